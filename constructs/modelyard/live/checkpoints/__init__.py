"""Facts of checkpoints, asked of the places where they are: the Hub, a bucket, a folder."""
