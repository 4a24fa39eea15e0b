"""Transducer (RNN-T) losses of our own, usable as a library. Needs torch; faster on the CPU with numba. Imports nothing of ours."""
from speechmeter.transducer.exact import rnnt_loss
from speechmeter.transducer.oracle import oracle_loss
