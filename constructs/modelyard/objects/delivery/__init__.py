"""What the platform stands on, as Flux or Argo CD installs it."""
