"""From an uploaded zip to a package that VNFs can be made from."""
