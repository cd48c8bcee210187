"""Random histories of two hosts on one VNF."""
