"""The add-ons that the platform needs, installed by Flux or Argo CD."""
