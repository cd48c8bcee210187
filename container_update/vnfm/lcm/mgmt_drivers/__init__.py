"""The Mgmt Drivers of packages, run as Tacker runs them: v1 classes and v2 scripts."""
