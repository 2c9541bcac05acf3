# SPDX-License-Identifier: Apache-2.0
# ctypes looks functions up in the library that is named: its malloc and free are ours in each, so that they
# fit what strdup made.
# run:
# prints: ok
import ctypes

for name in ("libc.so.6", "libm.so.6", None):
    library = ctypes.CDLL(name)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    c = ctypes.CDLL("libc.so.6")
    c.strdup.restype = ctypes.c_void_p
    for _ in range(1000):
        library.free(c.strdup(b"text"))
    program = ctypes.CDLL(None)
    program.free.argtypes = [ctypes.c_void_p]
    program.free(library.malloc(100))
print("ok")
