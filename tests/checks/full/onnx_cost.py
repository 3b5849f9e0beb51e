"""What `ampc autocast` takes for a large model, as a process: its memory, and the processor's time.

    onnx_cost.py AMPC MODEL.onnx OUT.onnx MOST_MB [MOST_SECONDS]

Prints "pass WHAT" or "FAIL WHAT". Seconds are of the user's time: what the system takes is the disk's.
"""
import resource
import subprocess
import sys

ampc, model, out, most_mb = sys.argv[1:5]
done = subprocess.run([ampc, "autocast", model, "-o", out, "--keep-io"], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
mb, seconds = used.ru_maxrss / 1024, used.ru_utime
what = (f"{model.split('/')[-1]}: {mb:.0f} MB of memory, {seconds:.2f} s of processor time, "
        f"{used.ru_stime:.2f} s of the system's")
print(what)
good = done.returncode == 0 and mb <= float(most_mb) and (len(sys.argv) < 6 or seconds <= float(sys.argv[5]))
print("pass" if good else "FAIL", what)
