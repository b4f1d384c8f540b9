"""The environment in which PyTorch is fastest on a CPU."""
import os
import sys


def tuned_environment(threads):
    """Restarts the script without what slows PyTorch down on CPUs: an OpenBLAS
    told to be an older machine's, element-wise loops in AVX2, a memory allocator
    that hands every large block back to the kernel."""
    if 'PEER_TUNED' in os.environ:
        return
    env = dict(os.environ, PEER_TUNED='1', OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               MALLOC_MMAP_THRESHOLD_='2000000000', MALLOC_TRIM_THRESHOLD_='2000000000', MALLOC_TOP_PAD_='268435456')
    for name in ('OPENBLAS_CORETYPE', 'OPENBLAS_L2_SIZE'):
        env.pop(name, None)
    with open('/proc/cpuinfo') as f:
        if 'avx512f' in f.read():
            env['ATEN_CPU_CAPABILITY'] = 'avx512'
    openmp = '/usr/lib/x86_64-linux-gnu/openblas-openmp'  # Debian: the build that shares PyTorch's threads
    if os.path.isdir(openmp):
        env['LD_LIBRARY_PATH'] = openmp + ':' + env.get('LD_LIBRARY_PATH', '')
    os.execve(sys.executable, [sys.executable] + sys.argv, env)
