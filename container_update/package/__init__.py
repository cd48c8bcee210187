"""A CSAR as values: archive, metadata, VNFD, manifests, templates; and how to build one."""
