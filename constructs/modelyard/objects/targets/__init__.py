"""The same plan for other targets: Docker Compose, KServe, or a cluster without accelerators."""
