#!/usr/bin/env bash
# Everything that needs a GPU, in one go.
#
#	backend/cuda/gpu.sh build DIR        where Go, gcc and cuda.h's wheel can be had
#	DIR/gpu.sh run REPORT.md [PART…]     on the machine with the GPU
#
# build puts binaries and scripts into DIR (some 60 MB), which is all that the
# other machine needs, besides the NVIDIA driver, cuBLAS 12 or 13, for the sanitizers
# compute-sanitizer, and for the comparison python3 with torch and torch_geometric.
# run checks the engine against the reference in both precisions, the fused
# operators, the gradients and the recorded steps, trains on CPU and GPU side by
# side, runs every kernel under NVIDIA's sanitizers, and times everything beside
# PyTorch. It writes one Markdown file, and the logs beside it as .tar.gz, and fails
# if a check did. PARTs are checks, sanitizers, and what to time: unsupervised,
# semisupervised, transfer, kernels. All together take half an hour or more, mostly
# the sanitizers' and PyTorch's; each should end within ten minutes.
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
  if [ $verdict = pass ] && grep -qE "^(--- SKIP|without $engine:|testing: warning: no tests)" "$log"; then verdict=FAIL; fi # nothing may be skipped here
  echo "| $name | $verdict | $((SECONDS - start)) s |" | tee -a "$report"
  if [ $verdict = FAIL ]; then
    failed=1
    { echo; echo "$name: \`$*\`"; echo '```'; tail -n 25 "$log"; echo '```'; } >> "$failures"
  fi
}

# tell ends a part of the report with what failed.
tell() {
  cat "$failures" >> "$report"
  : > "$failures"
}

# curves PRECISION STEPS TOLERANCE compares the losses of training on both engines.
curves() {
  for e in cpu "$engine"; do
    timeout 150 ./bench "${small[@]}" -backend "$e" -precision "$1" -steps "$2" -warmup 0 -losses -json > "$tmp/curve-$e-$1.json" || return 1
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
  shift
  cd "$(dirname "$0")" || exit 1
  local part known=(checks sanitizers unsupervised semisupervised transfer kernels)
  for part in "$@"; do [[ " ${known[*]} " = *" $part "* ]] || usage; done
  [ $# = 0 ] && set -- "${known[@]}"
  engine=${SPECMATCH_GPU_ENGINE:-cuda}
  local test_short=() steps=300 peer_steps=100 curve_steps=(40 200)
  small=()
  if [ -n "${SPECMATCH_GPU_QUICK:-}" ]; then
    test_short=(-test.short) steps=1 peer_steps=1 curve_steps=(3 3) small=(-batch 8)
  fi
  tmp=$(mktemp -d)
  failures=$tmp/failures
  : > "$failures"
  # What the driver compiles is kept for the next process, also where there is no
  # home; and what the machine forgets lies with the report.
  local cache
  cache=$(mktemp -d)
  export CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$cache}
  trap 'tar -czf "${report%.md}.tar.gz" -C "$tmp" .; rm -rf "'"$cache"'"' EXIT
  trap 'exit 143' TERM INT
  failed=0
  PATH=$PATH:/sbin:/usr/sbin:/usr/local/cuda/bin # ldconfig, compute-sanitizer
  # cuBLAS of PyTorch's packages, or of the toolkit, where the loader knows none.
  if [ -z "${SPECMATCH_LIBCUBLAS:-}" ] && ! ldconfig -p | grep 'libcublas\.so\.1[23]' > /dev/null; then
    lib=$(python3 -c 'import glob, site, sys; print(next(iter(sorted(f for d in site.getsitepackages() + sys.path for f in glob.glob(d + "/nvidia/**/libcublas.so.1[23]", recursive=True))), ""))')
    [ -n "$lib" ] || lib=$(find /usr/local/cuda/lib64/ -name 'libcublas.so.1[23]' 2> /dev/null | head -n 1)
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
  local timed=()
  for part in "$@"; do
    case $part in
    checks | sanitizers)
      $part
      tell
      ;;
    *) timed+=("$part") ;;
    esac
  done
  if [ ${#timed[@]} != 0 ]; then
    times "${timed[@]}"
    tell
  fi
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
  local conformance='^(TestDevice|TestDeviceTraining|TestDeviceShared|TestDeviceOthers)$'
  [ "$engine" = cuda-emulator ] && conformance='^TestEmulated$/float32/^(Fill|Gemm|Capture)$'
  local limit=-test.timeout=240s # says where it hangs
  check "conformance, both precisions, and bits of replayed steps" ./cuda.test "${test_short[@]}" "$limit" -test.v -test.run "$conformance"
  check "gradients of every operator, float64" ./autodiff.test "$limit" -test.v -test.run "^TestGradients$/^$engine\$"
  check "fused rows" ./autodiff.test "$limit" -test.v -test.run '^TestFusedRows$'
  check "fused layers" ./gnn.test "$limit" -test.v -test.run '^TestFusedIsComposed$'
  check "fused losses" ./specmatch.test "$limit" -test.v -test.run '^TestFusedLosses$'
  check "recorded steps" ./specmatch.test "$limit" -test.v -test.run "^Test(Recorded|Replay)"
  check "loss curves of CPU and GPU, float64" curves float64 "${curve_steps[0]}" 1e-6
  check "loss curves of CPU and GPU, float32" curves float32 "${curve_steps[1]}" 2e-2
  for f in "$tmp"/loss_curves*.log; do echo "| $(basename "$f" .log | tr _ ' ') | $(tail -n 1 "$f") | |" >> "$report"; done
}

# sanitizers runs every kernel (everyKernel in every_test.go, which fails if it left
# one out), and the conformance suite as far as it comes to a part of its kernels.
sanitizers() {
  {
    echo
    echo "## Sanitizers"
    echo
    echo "| check | verdict | time |"
    echo "| --- | --- | ---: |"
  } >> "$report"
  local tool tools=(memcheck racecheck synccheck) every='^TestDeviceEveryKernel$'
  # Errors of the driver's interface are the callers' to judge, cuBLAS and ours.
  sanitize() {
    local more=()
    [ "$1" = memcheck ] && more=(--report-api-errors no)
    timeout 120 compute-sanitizer --error-exitcode 9 --print-limit 5 --tool "$1" "${more[@]}" "${@:2}"
  }
  if [ "$engine" = cuda-emulator ]; then
    tools=(none) every='^TestEmulatedEveryKernel$'
    sanitize() { "${@:2}"; }
  elif ! command -v compute-sanitizer > /dev/null; then
    echo "| compute-sanitizer | not on this machine | |" >> "$report"
    return
  fi
  for tool in "${tools[@]}"; do
    check "every kernel, $tool" sanitize "$tool" ./cuda.test -test.v -test.run "$every"
  done
  [ "$engine" = cuda ] && check "conformance, memcheck" sanitize memcheck ./cuda.test -test.short -test.v \
    -test.run '^TestDevice$/float32/^(CopyBlock|Transpose|GatherRows|ReduceRows|ColSums|Dot|SegmentSum|SegmentExpand|SpMM|Capture)$'
  { echo; echo "Under each tool, with their launches:"; echo; grep -h '^launches' "$tmp"/every_kernel*.log | sort -u | sed 's/^launches, /- /'; } >> "$report"
}

# times PART… runs ours and PyTorch's in turn, on the machine as it is.
times() {
  local results=$tmp/results
  ours() { echo "ours $*" >&2; timeout 200 ./bench "${small[@]}" -json -steps "$steps" -warmup "$((steps / 10))" -backend "$engine" "$@" >> "$results" 2>> "$tmp/bench.log" || { echo "$* failed" >> "$failures"; failed=1; }; }
  peer() { echo "peer $*" >&2; timeout 200 python3 step.py --steps "$peer_steps" --threads "$(nproc)" "$@" 2>> "$tmp/peer.log" | tail -n 1 >> "$results"; }
  : > "$results"
  local workload mode rows=200000
  [ -n "${SPECMATCH_GPU_QUICK:-}" ] && rows=300
  for workload in "$@"; do
    if [ "$workload" = kernels ]; then
      ours -kernels $rows
      ours -kernels $rows -precision float64
      [ "$engine" = cuda ] && ours -kernels $rows -tf32
      continue
    fi
    ours -workload "$workload"
    ours -workload "$workload" -recorded
    if [ "$engine" = cuda-emulator ]; then
      peer --workload "$workload" --layers sparse
      continue
    fi
    ours -workload "$workload" -recorded -tf32
    for mode in eager compile graph; do
      peer --device cuda --workload "$workload" --mode $mode
      peer --device cuda --workload "$workload" --mode $mode --tf32
    done
  done
  python3 - "$results" >> "$report" <<'PYTHON'
import json, sys

results = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
number = lambda v, digits=3: "" if v is None else f"{v:.{digits}f}"
onoff = lambda v: "on" if v else "off"


def table(text, header, rows):
    """Prints a table, unless it is empty. Headings of numbers end with a colon."""
    if rows:
        print(text)
        cells = [h.strip() for h in header.split("|")]
        print("| " + " | ".join(c.rstrip(":") for c in cells) + " |")
        print("|" + "|".join(" ---: " if c.endswith(":") else " --- " for c in cells) + "|")
        for row in rows:
            print("| " + " | ".join(row) + " |")


def reached(floor):
    return [number(floor["ms"]), f"{100 * floor['share']:.0f} %", floor["binds"]] if floor else ["", "", ""]


steps, floors, best = [], [], {}
for r in results:
    if "kernel" in r:
        continue
    if "median_ms" in r:
        t, tf32 = r["median_ms"], r["tf32"]
        name = f"PyTorch {r['torch']}, {r['mode']}"
        step, augment, train, device, busy = t["total"], t["augment"], t["compute"], None, None
        kinds = ["PyTorch"] + ["PyTorch eager"] * (r["mode"] == "eager")
    else:
        tf32 = r["backend"] == "cuda-tf32"
        name = f"specmatch, {r['backend']}, {'recorded' if r['recorded'] else 'eager'}"
        step, augment, train, device, busy = r["ms_per_step"], r["ms_augment"], r["ms_train"], r["ms_device"] or None, r["device_busy"] or None
        kinds = ["ours"]
    floor, workload = r.get("floor"), f"{r['workload']}, batch {r['batch']}"
    for kind in kinds:
        old = best.setdefault((workload, tf32), {}).get(kind, (train, step))
        best[workload, tf32][kind] = (min(train, old[0]), min(step, old[1]))
    steps.append([workload, name, onoff(tf32), *map(number, (step, augment, train, device)), number(busy, 2), *reached(floor), number(r["loss"])])
    if floor:
        parts = floor["ms_launches"], floor["ms_bytes"], floor["ms_products"]
        rates = 1e3 * parts[0] / floor["launches"], floor["mbytes"] / parts[1], floor["mflops"] / parts[2]
        floors.append([workload, name, f"{floor['launches']:.0f}", number(floor["mbytes"], 1), number(floor["mflops"], 0),
                       number(rates[0], 2), number(rates[1], 1), number(rates[2], 1), *map(number, parts), number(device or train)])
table("""
## Steps

Milliseconds, medians; a step is two augmented views, forward, losses, backward and Adam. Train is the step on
batches that are ready, and device the GPU's part of a recorded one; busy is device/step. The floor, below, is
compared with device, or with train for eager steps.
""", "workload | implementation | TF32 | step: | augment: | train: | device: | busy: | floor: | reached: | binds | loss:", steps)
ratios = [[w, onoff(tf32)] + [number(b[kind][k] / b["ours"][k], 1) for k in (0, 1) for kind in ("PyTorch eager", "PyTorch")]
          for (w, tf32), b in best.items() if "ours" in b and "PyTorch eager" in b]
table("", "workload | TF32 | PyTorch eager / ours, train: | best PyTorch / ours, train: | PyTorch eager / ours, step: | best PyTorch / ours, step:", ratios)
table("""
## Floors

What the device cannot beat: the launches, at the cost of one that does nothing to speak of, eager or recorded;
the bytes of the operands of all kernels, each read or written once, at the rate of large copies; the flops of
the products, at the rate of one of up to 4096 squared. The engine counts them, and the rates are measured in the
same process. The floor is the largest of the three, which binds. What stays in the cache between two kernels is
faster than a copy, so a step that bytes bind can beat its floor.
""", "workload | implementation | launches: | MB: | MFLOP: | µs a launch: | GB/s: | GFLOP/s: | ms of launches: | of bytes: | of products: | measured:", floors)
kernels = []
for r in results:
    if "kernel" in r:
        floor, rate = r["floor"], lambda v: number(v / r["ms"], 1) if v else ""
        us, share, binds = number(1e3 * floor["ms"], 1), *reached(floor)[1:]
        kernels.append([f"{r['backend']} {r['precision']}", r["kernel"], number(1e3 * r["ms"], 1), us, share, binds, rate(floor["mbytes"]), rate(floor["mflops"])])
table("""
## Kernels

By themselves, eager, in microseconds.
""", "engine | kernel | time: | floor: | reached: | binds | GB/s: | GFLOP/s:", kernels)
PYTHON
  if [ -s "$tmp/bench.log" ]; then { echo; echo '```'; tail -n 15 "$tmp/bench.log"; echo '```'; } >> "$report"; fi
  [ -s "$tmp/peer.log" ] && grep -aE 'Error|error' "$tmp/peer.log" | sort | uniq -c | tail -n 5 | sed 's/^/PyTorch: /' >> "$report"
}

case "${1:-} $#" in
"build 2") build "$2" ;;
"run 1") usage ;;
"run "*) run "${@:2}" ;;
*) usage ;;
esac
