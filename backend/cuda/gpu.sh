#!/usr/bin/env bash
# Everything that needs a GPU, in one go.
#
#	backend/cuda/gpu.sh build DIR        where Go, gcc and cuda.h's wheel can be had
#	DIR/gpu.sh run REPORT.md [PART]      on the machine with the GPU
#
# build puts binaries and scripts into DIR (some 60 MB), which is all that the
# other machine needs, besides the NVIDIA driver, cuBLAS 12 or 13, and for the
# comparison python3 with torch and torch_geometric. run checks the engine against
# the reference in both precisions, alone and under compute-sanitizer, the fused
# operators, the gradients and the recorded steps, trains on CPU and GPU side by
# side, and times everything beside PyTorch. It writes one Markdown file and fails
# if a check did. PART is checks or times, where one call cannot take as long as
# both: some ten minutes each, mostly compute-sanitizer's and PyTorch's.
#
# SPECMATCH_GPU_ENGINE names another engine and SPECMATCH_GPU_QUICK=1 takes the
# fewest steps, for a rehearsal without a GPU (build with TAGS=emulate).
set -uo pipefail

usage() { sed -n '2,5s/^#//p' "$0" >&2; exit 2; }

build() {
  set -e
  local root out tags=${TAGS:-cuda}
  root=$(cd "$(dirname "$0")/../.." && pwd)
  mkdir -p "$1"
  out=$(cd "$1" && pwd)
  cd "$root"
  if [ "$tags" = cuda ]; then
    CGO_CFLAGS="-I$(backend/cuda/kernels/toolkit.sh)/include"
    export CGO_CFLAGS
  fi
  local flags=(-trimpath "-ldflags=-s -w" -tags "$tags")
  go build "${flags[@]}" -o "$out/" ./experiments/doctor ./experiments/bench
  for pkg in backend/cuda autodiff gnn specmatch; do
    go test -c "${flags[@]}" -o "$out/$(basename $pkg).test" "./$pkg"
  done
  cp experiments/bench/peer/*.py backend/cuda/gpu.sh "$out/"
  { git rev-parse --short HEAD; git status --porcelain -uno | sed 's/^/changed: /'; } > "$out/version"
  du -sh "$out"
}

# check NAME COMMAND… runs a check and adds its verdict to the report; what it
# printed goes to a file of its own and, if it failed, its end to the report.
check() {
  local name=$1 log start=$SECONDS verdict=pass
  shift
  log=$tmp/$(echo "$name" | tr -c 'A-Za-z0-9\n' _).log
  "$@" > "$log" 2>&1 || verdict=FAIL
  if [ $verdict = pass ] && grep -q '^--- SKIP' "$log"; then verdict=FAIL; fi # nothing may be skipped here
  echo "| $name | $verdict | $((SECONDS - start)) s |" | tee -a "$report"
  if [ $verdict = FAIL ]; then
    failed=1
    { echo; echo "$name: \`$*\`"; echo '```'; tail -n 25 "$log"; echo '```'; } >> "$failures"
  fi
}

# curves PRECISION STEPS TOLERANCE compares the losses of training on both engines.
curves() {
  for e in cpu "$engine"; do
    ./bench "${small[@]}" -backend "$e" -precision "$1" -steps "$2" -warmup 0 -losses -json > "$tmp/curve-$e-$1.json" || return 1
  done
  python3 - "$tmp/curve-cpu-$1.json" "$tmp/curve-$engine-$1.json" "$3" <<'PYTHON'
import json, sys
a, b = (json.load(open(f))["losses"] for f in sys.argv[1:3])
worst = max(abs(x - y) / abs(x) for x, y in zip(a, b))
print(f"{len(a)} steps, loss {a[0]:.4f} to {a[-1]:.4f}, largest relative difference {worst:.3g}, allowed {sys.argv[3]}")
sys.exit(not (len(a) == len(b) and a[-1] < a[0] and worst <= float(sys.argv[3])))
PYTHON
}

run() {
  report=$(realpath "$1")
  part=${2:-all}
  cd "$(dirname "$0")" || exit 1
  engine=${SPECMATCH_GPU_ENGINE:-cuda}
  local test_short=() steps=300 peer_steps=100 curve_steps=(40 200)
  small=()
  if [ -n "${SPECMATCH_GPU_QUICK:-}" ]; then
    test_short=(-test.short) steps=1 peer_steps=1 curve_steps=(3 3) small=(-batch 8)
  fi
  tmp=$(mktemp -d)
  failures=$tmp/failures
  : > "$failures"
  failed=0
  # cuBLAS of PyTorch's packages, where the loader knows none.
  if [ -z "${SPECMATCH_LIBCUBLAS:-}" ] && ! ldconfig -p | grep -q 'libcublas\.so\.1[23]'; then
    lib=$(python3 -c 'import glob, site, sys; print(next(iter(sorted(f for d in site.getsitepackages() + sys.path for f in glob.glob(d + "/nvidia/**/libcublas.so.1[23]", recursive=True))), ""))')
    [ -n "$lib" ] && export SPECMATCH_LIBCUBLAS=$lib
  fi

  {
    echo "# The CUDA engine on a GPU"
    echo
    echo "Made by \`gpu.sh run\` on $(date -u +%F), of commit $(head -n 1 version)$(grep -q changed version && echo ' with changes')."
    echo
    echo '```'
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv 2>&1
    echo "$(nproc) processors: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
    python3 -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)' 2>&1 | tail -n 1
    ./doctor -backend "$engine" 2>&1
    echo '```'
  } > "$report"
  [ "$part" != times ] && checks
  [ "$part" != checks ] && times
  echo "logs are in $tmp" >&2
  exit $failed
}

checks() {
  {
    echo
    echo "## Checks"
    echo
    echo "| check | verdict | time |"
    echo "| --- | --- | ---: |"
  } >> "$report"

  check "doctor" ./doctor -backend "$engine"
  check "doctor, float64" ./doctor -backend "$engine" -precision float64
  local conformance='^(TestDevice|TestDeviceTraining|TestDeviceShared)$'
  [ "$engine" = cuda-emulator ] && conformance='^TestEmulated$/float32/^(Fill|Gemm|Capture)$'
  check "conformance, both precisions, and bits of replayed steps" ./cuda.test "${test_short[@]}" -test.v -test.run "$conformance"
  if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
      check "conformance under compute-sanitizer $tool" timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 \
        ./cuda.test -test.short -test.v -test.run '^TestDevice$/float32/^(Fill|CopyBlock|Transpose|GatherRows|Unary|Binary|ReduceRows|ColSums|Dot|SegmentSum|SegmentExpand|SpMM|DropoutMask|Adam|Capture)$'
      check "fused operators under compute-sanitizer $tool" timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 \
        ./specmatch.test -test.v -test.run "^TestReplayIsStep$/$engine"
    done
  else
    echo "| compute-sanitizer | not on this machine | |" >> "$report"
  fi
  check "gradients of every operator, float64" ./autodiff.test -test.v -test.run "^TestGradients$/^$engine\$"
  check "fused rows" ./autodiff.test -test.v -test.run '^TestFusedRows$'
  check "fused layers" ./gnn.test -test.v -test.run '^TestFusedIsComposed$'
  check "fused losses" ./specmatch.test -test.v -test.run '^TestFusedLosses$'
  check "recorded steps" ./specmatch.test -test.v -test.run "^Test(Recorded|Replay)"
  check "loss curves of CPU and GPU, float64" curves float64 "${curve_steps[0]}" 1e-6
  check "loss curves of CPU and GPU, float32" curves float32 "${curve_steps[1]}" 2e-2
  for f in "$tmp"/loss_curves*.log; do echo "| $(basename "$f" .log | tr _ ' ') | $(tail -n 1 "$f") | |" >> "$report"; done
  cat "$failures" >> "$report"
}

# times runs ours and PyTorch's in turn, on the machine as it is.
times() {
  local results=$tmp/results
  ours() { echo "ours $*" >&2; ./bench "${small[@]}" -json -steps "$steps" -warmup "$((steps / 10))" "$@" >> "$results" 2>> "$tmp/bench.log" || echo "$* failed" >> "$failures"; }
  peer() { echo "peer $*" >&2; timeout 400 python3 step.py --steps "$peer_steps" "$@" 2>> "$tmp/peer.log" | tail -n 1 >> "$results"; }
  : > "$results"
  local peer_device=cuda
  [ "$engine" = cuda-emulator ] && peer_device=cpu
  local workloads=(unsupervised semisupervised transfer)
  [ -n "${SPECMATCH_GPU_QUICK:-}" ] && workloads=(unsupervised)
  for workload in "${workloads[@]}"; do
    ours -backend "$engine" -workload $workload
    ours -backend "$engine" -workload $workload -recorded
    [ "$engine" = cuda ] && ours -backend cuda -tf32 -workload $workload -recorded
    for mode in eager compile graph; do
      [ $peer_device = cpu ] && [ $mode != eager ] && continue
      peer --device $peer_device --workload $workload --mode $mode --threads "$(nproc)"
      [ $peer_device = cuda ] && peer --device cuda --workload $workload --mode $mode --threads "$(nproc)" --tf32
    done
  done
  local rows=200000
  [ -n "${SPECMATCH_GPU_QUICK:-}" ] && rows=300
  ours -backend "$engine" -kernels $rows
  ours -backend "$engine" -kernels $rows -precision float64
  [ "$engine" = cuda ] && ours -backend cuda -tf32 -kernels $rows
  python3 - "$results" >> "$report" <<'PYTHON'
import json, sys

rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
kernels = [r for r in rows if "kernel" in r]
rows = [r for r in rows if "kernel" not in r]
percent = lambda v: f"{100 * v:.0f} %"
print("\n## Steps\n\nMilliseconds, medians; a step is two augmented views, forward, losses, backward and Adam.")
print("Train is the step on batches that are ready; device is the GPU's part of a recorded step; busy is device/step.")
print("Reached is the floor (below) over device, or over train for eager steps.\n")
print("| workload | implementation | TF32 | step | augment | train | device | busy | floor | reached | binds | loss |")
print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
best, floors = {}, []
for r in rows:
    if "median_ms" in r:
        t = r["median_ms"]
        name, tf32 = f"PyTorch {r['torch']}, {r['mode']}", r["tf32"]
        step, augment, train, device, busy = t["total"], t["augment"], t["compute"], None, None
    else:
        name, tf32 = f"specmatch, {r['backend']}, {'recorded' if r['recorded'] else 'eager'}", r["backend"] == "cuda-tf32"
        step, augment, train, device, busy = r["ms_per_step"], r["ms_augment"], r["ms_train"], r["ms_device"] or None, r["device_busy"] or None
    who = "PyTorch eager" if "eager" in name and "PyTorch" in name else "PyTorch best" if "PyTorch" in name else "ours"
    key = (r["workload"], tf32, who)
    for k in (key, (r["workload"], tf32, "PyTorch best")) if "PyTorch" in who else (key,):
        old = best.get(k)
        best[k] = (min(train, old[0]), min(step, old[1])) if old else (train, step)
    f = lambda v, digits=3: "" if v is None else f"{v:.{digits}f}"
    least = r.get("floor")
    if least:
        floors.append((r["workload"], name, least, device or train))
    reached = f"{f(least['ms'])} | {percent(least['share'])} | {least['binds']}" if least else " | | "
    print(f"| {r['workload']} | {name} | {'on' if tf32 else 'off'} | {f(step)} | {f(augment)} | {f(train)} | {f(device)} | {f(busy, 2)} | {reached} | {f(r['loss'])} |")
print("\n| workload | TF32 | PyTorch eager / ours, train | best PyTorch / ours, train | PyTorch eager / ours, step | best PyTorch / ours, step |\n| --- | --- | ---: | ---: | ---: | ---: |")
for w, tf32 in dict.fromkeys(k[:2] for k in best):
    mine, eager, peer = (best.get((w, tf32, who)) for who in ("ours", "PyTorch eager", "PyTorch best"))
    if mine and eager:
        print(f"| {w} | {'on' if tf32 else 'off'} | {eager[0] / mine[0]:.1f} | {peer[0] / mine[0]:.1f} | {eager[1] / mine[1]:.1f} | {peer[1] / mine[1]:.1f} |")

print("""
## Floors

What a device cannot beat: the bytes of all operands of all kernels, each read or written once, at the rate
of large copies; the flops of the products, at the rate of a product of 4096 squared; the launches, at the
cost of one that does nothing to speak of, eager or recorded. The engine counts them; the rates are measured
in the same process. The floor is the largest, which binds. What stays in the cache between two kernels is
faster than copies, so a step that bytes bind can beat its floor.
""")
print("| workload | implementation | launches | MB | MFLOP | ms of bytes | of products | of launches | floor | measured |")
print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
for workload, name, least, took in floors:
    print(f"| {workload} | {name} | {least['launches']:.0f} | {least['mbytes']:.1f} | {least['mflops']:.0f} | {least['ms_bytes']:.3f} | {least['ms_products']:.3f} | {least['ms_launches']:.3f} | {least['ms']:.3f} | {took:.3f} |")
print("\nKernels by themselves, eager.\n")
print("| engine | kernel | time | GB/s | GFLOP/s | floor | reached | binds |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
for r in kernels:
    least, ms = r["floor"], r["ms"]
    rate = lambda v: f"{v / ms:.1f}" if v else ""
    print(f"| {r['backend']} {r['precision']} | {r['kernel']} | {1e3 * ms:.1f} µs | {rate(least['mbytes'])} | {rate(least['mflops'])} | {1e3 * least['ms']:.1f} µs | {percent(least['share'])} | {least['binds']} |")
PYTHON
  for log in bench peer; do
    if [ -s "$tmp/$log.log" ] && [ $log = bench ]; then { echo; echo '```'; tail -n 15 "$tmp/$log.log"; echo '```'; } >> "$report"; failed=1; fi
  done
  [ -s "$tmp/peer.log" ] && grep -aE 'Error|error' "$tmp/peer.log" | sort | uniq -c | tail -n 5 | sed 's/^/PyTorch: /' >> "$report"
}

case "${1:-} $#" in
"build 2") build "$2" ;;
"run 2" | "run 3") run "$2" "${3:-all}" ;;
*) usage ;;
esac
