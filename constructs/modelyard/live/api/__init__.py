"""The APIs of AWS and of Kubernetes. Nothing else in `live` opens a connection or reads an error of a
library."""
