"""What subjects are fed: one file a workload."""
