"""What a VNF manager loads: adapters that translate, nothing else."""
