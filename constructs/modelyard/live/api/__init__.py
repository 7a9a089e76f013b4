"""The APIs of AWS and Kubernetes. No other package in `live` opens a connection or handles a library's
errors."""
