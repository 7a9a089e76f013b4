"""The same plan for something else than our own objects: one box, KServe, or a cluster without
accelerators."""
