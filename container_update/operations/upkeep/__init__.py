"""What keeps a VNF that runs: heal and scale. A change of its package is another matter."""
