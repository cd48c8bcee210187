"""The live resources of a VNF instance, for somebody who looks at it."""
