"""The losses as fused Triton kernels: on a GPU, and for tests on the CPU under Triton's interpreter. Imports triton."""
