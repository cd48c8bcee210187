"""How each kind of step gets to the cluster, and back."""
