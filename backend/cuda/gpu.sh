#!/usr/bin/env bash
# All checks and measurements that need a GPU, in one run.
#
#	backend/cuda/gpu.sh build DIR        where Go, gcc and pip are available
#	DIR/gpu.sh run REPORT.md [PART…]     on the machine with the GPU
#
# build writes binaries and scripts to DIR (some 45 MB). The other machine also needs
# the NVIDIA driver and cuBLAS 12 or 13; compute-sanitizer for the sanitizers; ncu for the
# profile; and python3 with torch and torch_geometric for the comparison.
#
# run checks the engine against the reference in both precisions, the fused operators,
# the gradients and the recorded steps. It trains on CPU and GPU side by side, times all
# workloads against PyTorch, and runs every kernel under NVIDIA's sanitizers. It writes one
# Markdown file with the tables of README.md, and fails if a check failed.
#
# PARTs are checks, the workloads to time (unsupervised, transfer, semisupervised,
# kernels), jobs, profile and sanitizers; by default all but jobs and the profile, in this order.
# They are cut to fit eight minutes. jobs times embed and finetune with and without the GPU. It needs
# zinc250k.csv.gz and bace.csv.gz in the folder SPECMATCH_GPU_DATA, and takes a minute. Results are kept in REPORT.run next to the report:
# an interrupted run, or one with other PARTs, resumes there, unless DIR was built from
# another commit since.
#
# SPECMATCH_GPU_COMPILE=1 also times torch.compile, which takes minutes to compile.
# SPECMATCH_GPU_ENGINE selects another engine, and SPECMATCH_GPU_QUICK=1 runs the
# fewest steps, for a rehearsal without a GPU (build with TAGS=emulate).
set -uo pipefail

usage() { sed -n '2,5s/^#//p' "$0" >&2; exit 2; }

build() {
  set -e
  local root out flags pkg tags=${TAGS:-cuda}
  root=$(cd "$(dirname "$0")/../.." && pwd)
  mkdir -p "$1"
  out=$(cd "$1" && pwd)
  cd "$root"
  if [ "$tags" = cuda ]; then
    CGO_CFLAGS="-I$(backend/cuda/kernels/toolkit.sh)/include"
    export CGO_CFLAGS
  fi
  flags=(-trimpath "-ldflags=-s -w" -tags "$tags")
  go build "${flags[@]}" -o "$out/" ./experiments/doctor ./experiments/bench
  go build "${flags[@]}" -o "$out/specmatch-program" ./specmatch/cmd/specmatch
  for pkg in backend/cuda autodiff gnn specmatch; do
    go test -c "${flags[@]}" -o "$out/$(basename $pkg).test" "./$pkg"
  done
  cp experiments/bench/peer/*.py backend/cuda/gpu.sh "$out/"
  { git rev-parse --short HEAD; git status --porcelain -uno | sed 's/^/changed: /'; } > "$out/version"
  du -sh "$out"
}

# check NAME COMMAND… runs a check and records its verdict, unless it has passed before.
# Its output goes to a file of its own.
check() {
  local name=$1 place log start=$SECONDS verdict=pass
  shift
  place=$(next)
  log=$place.log
  grep -qs '| pass |' "$place.row" && return
  "$@" > "$log" 2>&1 || verdict=FAIL
  if [ $verdict = pass ] && grep -qE "^(--- SKIP|without $engine:|testing: warning: no tests)" "$log"; then verdict=FAIL; fi # nothing may be skipped here
  echo "| $name | $verdict | $((SECONDS - start)) s |" | tee "$place.row"
  if [ $verdict = FAIL ]; then
    failed=1
    { echo; echo "$name: \`$*\`"; echo '```'; tail -n 25 "$log"; echo '```'; } > "$place.failure"
  else
    rm -f "$place.failure"
  fi
}

# next prints the prefix of the files for the next result of a part.
next() {
  local n
  n=$(($(cat "$work/count") + 1))
  echo $n > "$work/count"
  printf '%s/%s-%02d' "$work" "$part" $n
}

# curves PRECISION STEPS TOLERANCE compares the losses of training on both engines.
curves() {
  for e in cpu "$engine"; do
    timeout 150 ./bench "${small[@]}" -backend "$e" -precision "$1" -steps "$2" -warmup 0 -losses -json > "$work/curve-$e-$1.json" || return 1
  done
  python3 - "$work/curve-cpu-$1.json" "$work/curve-$engine-$1.json" "$3" <<'PYTHON'
import json, sys
a, b = (json.load(open(f))["losses"] for f in sys.argv[1:3])
worst = max(abs(x - y) / abs(x) for x, y in zip(a, b))
print(f"{len(a)} steps, loss {a[0]:.4f} to {a[-1]:.4f}, largest relative difference {worst:.3g}, allowed {sys.argv[3]}")
sys.exit(not (len(a) == len(b) and a[-1] < a[0] and worst <= float(sys.argv[3])))
PYTHON
}

run() {
  report=$(realpath "$1")
  work=${report%.md}.run
  shift
  cd "$(dirname "$0")" || exit 1
  local part known=(checks unsupervised transfer semisupervised kernels jobs profile sanitizers)
  for part in "$@"; do [[ " ${known[*]} " = *" $part "* ]] || usage; done
  [ $# = 0 ] && set -- checks unsupervised transfer semisupervised kernels sanitizers
  engine=${SPECMATCH_GPU_ENGINE:-cuda}
  local test_short=() steps=200 peer_steps=60 curve_steps=(40 200)
  small=()
  if [ -n "${SPECMATCH_GPU_QUICK:-}" ]; then
    test_short=(-test.short) steps=1 peer_steps=1 curve_steps=(3 3) small=(-batch 8)
  fi
  { cat version; echo "$engine" "${small[@]}"; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1; } > "$report.of"
  cmp -s "$report.of" "$work/of" || rm -rf "$work"
  mkdir -p "$work"
  mv "$report.of" "$work/of"
  # The driver keeps compiled kernels for the next process, even without a home
  # directory. The results are also packed next to the report.
  export CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$work/cache}
  trap 'compose; tar -czf "${report%.md}.tar.gz" -C "$work" --exclude ./cache .' EXIT
  trap 'exit 143' TERM INT
  failed=0
  PATH=$PATH:/sbin:/usr/sbin:/usr/local/cuda/bin # ldconfig, compute-sanitizer, ncu
  # If the loader finds no cuBLAS, use that of PyTorch's packages or of the toolkit.
  if [ -z "${SPECMATCH_LIBCUBLAS:-}" ] && ! ldconfig -p | grep 'libcublas\.so\.1[23]' > /dev/null; then
    lib=$(python3 -c 'import glob, site, sys; print(next(iter(sorted(f for d in site.getsitepackages() + sys.path for f in glob.glob(d + "/nvidia/**/libcublas.so.1[23]", recursive=True))), ""))')
    [ -n "$lib" ] || lib=$(find /usr/local/cuda/lib64/ -name 'libcublas.so.1[23]' 2> /dev/null | head -n 1)
    [ -n "$lib" ] && export SPECMATCH_LIBCUBLAS=$lib
  fi

  {
    card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -n 1)
    echo "### On one ${card:-$engine}"
    echo
    echo "Made by \`gpu.sh run\` on $(date -u +%F), of commit $(head -n 1 version)$(grep -q changed version && echo ' with changes')."
    echo
    echo '```'
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv 2>&1
    echo "$(nproc) processors: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
    python3 -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)' 2>&1 | tail -n 1
    ./doctor -backend "$engine" 2>&1
    echo '```'
  } > "$work/head"
  for part in "$@"; do
    echo 0 > "$work/count"
    case $part in
    checks | sanitizers | jobs | profile) $part ;;
    *) times "$part" ;;
    esac
  done
  exit $failed
}

# compose writes the report from all results so far.
compose() {
  local title
  {
    cat "$work/head"
    for part in checks sanitizers; do
      compgen -G "$work/$part-*.row" > /dev/null || continue
      title=${part^}
      printf '\n#### %s\n\n| check | verdict | time |\n| --- | --- | ---: |\n' "$title"
      cat "$work/$part"-*.row
      cat "$work/$part"-*.failure 2> /dev/null
      if [ $part = sanitizers ]; then
        printf '\nUnder each tool, with their launches:\n\n'
        grep -hs '^launches' "$work/$part"-*.log | sort -u | sed 's/^launches, /- /'
      fi
    done
    if compgen -G "$work/jobs-*.row" > /dev/null; then
      printf '\n#### Jobs\n\nSeconds, each job twice in turn.\n\n| job | engine | s | user | system |\n| --- | --- | ---: | ---: | ---: |\n'
      cat "$work"/jobs-*.row
    fi
    tables
    cat "$work"/profile-*.table 2> /dev/null
  } > "$report"
}

checks() {
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
  [ "$engine" = cuda ] || return
  check "products in parts: conformance, errors" ./cuda.test "$limit" -test.v -test.run '^Test(Split|Tall)'
  engine=cuda-3xtf32 check "products in three parts: loss curves" curves float32 "${curve_steps[1]}" 2e-2
}

# sanitizers runs every kernel (everyKernel in every_test.go, which fails if it missed
# one), and the part of the conformance suite that moves and sums.
sanitizers() {
  local tool tools=(memcheck initcheck racecheck synccheck) every='^TestDeviceEveryKernel$'
  # The callers, cuBLAS and the engine, handle errors of the driver's interface.
  # cuBLAS's own kernels are excluded: racecheck gives false alarms there.
  sanitize() {
    local more=() library
    case $1 in
    memcheck) more=(--report-api-errors no) ;;
    racecheck | synccheck)
      for library in gemm gemv cublas cutlass splitK xmma; do more+=("$leave_out" "kns=$library"); done
      ;;
    esac
    timeout 240 compute-sanitizer --error-exitcode 9 --print-limit 5 --tool "$1" "${more[@]}" "${@:2}"
  }
  if [ "$engine" = cuda-emulator ]; then
    tools=(none) every='^TestEmulatedEveryKernel$'
    sanitize() { "${@:2}"; }
  elif ! command -v compute-sanitizer > /dev/null; then
    check "compute-sanitizer is there" command -v compute-sanitizer
    return
  else # the option's name changed with CUDA 12
    leave_out=$(compute-sanitizer --help | grep -oE -m 1 -e '--(kernel-regex-exclude|kernel-name-exclude|exclude)\b' | head -n 1)
  fi
  for tool in "${tools[@]}"; do
    check "every kernel, $tool" sanitize "$tool" ./cuda.test -test.v -test.run "$every"
  done
  [ "$engine" = cuda ] && check "conformance, memcheck" sanitize memcheck ./cuda.test -test.short -test.v \
    -test.run '^TestDevice$/float32/^(CopyBlock|Transpose|GatherRows|ReduceRows|ColSums|Dot|SegmentSum|SegmentExpand|SpMM|Capture)$'
}

# jobs times whole jobs, on the processors and on the engine, twice in turn.
jobs() {
  local data=${SPECMATCH_GPU_DATA:-} out place e
  if [ ! -s "$data/zinc250k.csv.gz" ] || [ ! -s "$data/bace.csv.gz" ]; then
    echo "jobs: zinc250k.csv.gz and bace.csv.gz are not in the folder SPECMATCH_GPU_DATA ($data)" >&2
    failed=1
    return
  fi
  place=$(next)
  out=$(mktemp -d)
  # timed NAME COMMAND… adds a row: the engine, the time on the clock and that of the processors.
  timed() {
    local name=$1 TIMEFORMAT='%R | %U | %S' spent
    shift
    if spent=$({ time timeout 60 ./specmatch-program "$@" -backend "$e" > "$place.log" 2>&1; } 2>&1); then
      echo "| $name | $e | $spent |" | tee -a "$place.row"
    else
      echo "| $name | $e | failed: $(grep -aE . "$place.log" | tail -n 1 | cut -c 1-80) | | |" | tee -a "$place.row"
      failed=1
    fi
    rm -rf "${out:?}"/*
  }
  rm -f "$place.row"
  for e in cpu "$engine" cpu "$engine"; do
    timed "embed, ZINC250k" embed -in "$data/zinc250k.csv.gz" -out "$out/v.npy"
    timed "finetune, bace, 10 epochs" finetune -in "$data/bace.csv.gz" -target Class -seeds 1 -epochs 10 -out "$out/run"
  done
  rm -rf "$out"
}

# profile lists the times of the kernels of a few steps, as ncu measures them.
profile() {
  local workload place
  for workload in unsupervised transfer semisupervised; do
    place=$(next)
    [ -s "$place.table" ] && continue
    if ! command -v ncu > /dev/null; then
      echo "profile: ncu is not on this machine" | tee "$place.failed"
      return
    fi
    timeout 180 ncu --clock-control none --metrics gpu__time_duration.sum --csv --launch-skip 1000 --launch-count 600 \
      ./bench -workload "$workload" -steps 20 -warmup 0 -backend "$engine" > "$place.csv" 2> "$place.log"
    python3 - "$place.csv" "$workload" > "$place.new" <<'PYTHON' && mv "$place.new" "$place.table" || failed=1
import csv, sys

times = {}
for row in csv.DictReader(line for line in open(sys.argv[1]) if line.startswith('"')):
    scale = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1, "us": 1, "msecond": 1e3, "ms": 1e3}[row["Metric Unit"]]
    times.setdefault(row["Kernel Name"].split("(")[0], []).append(float(row["Metric Value"].replace(",", "")) * scale)
if not times:
    sys.exit("ncu measured nothing")
total = sum(map(sum, times.values()))
print(f"\n#### Kernels within steps, {sys.argv[2]}\n\nMicroseconds, of {sum(map(len, times.values()))} launches in a row (ncu).\n")
print("| kernel | launches | mean | longest | share |\n| --- | ---: | ---: | ---: | ---: |")
for name, t in sorted(times.items(), key=lambda x: -sum(x[1])):
    print(f"| {name[:60]} | {len(t)} | {sum(t) / len(t):.1f} | {max(t):.1f} | {100 * sum(t) / total:.0f} % |")
PYTHON
  done
}

# times WORKLOAD runs specmatch and PyTorch in turn, on the machine as it is. A failure
# is a result, too.
times() {
  local workload=$1 mode rows=200000 place
  [ -n "${SPECMATCH_GPU_QUICK:-}" ] && rows=300
  # measured WHO COMMAND… keeps the last line of JSON that a command prints.
  measured() {
    local who=$1 why
    shift
    place=$(next)
    [ -s "$place.json" ] && return
    echo "$who: $*" >&2
    timeout 200 "$@" 2> "$place.log" | grep '^{' > "$place.new"
    if [ "${PIPESTATUS[0]}" = 0 ] && [ -s "$place.new" ]; then
      mv "$place.new" "$place.json"
      rm -f "$place.failed"
      return
    fi
    why=$(grep -aE . "$place.log" | tail -n 1 | tr -d '"\\\t' | cut -c 1-100)
    echo "{\"failed\": \"${why:-it took too long}\", \"who\": \"$who\", \"command\": \"$*\"}" > "$place.failed"
    [ "$who" = ours ] && failed=1
  }
  ours() { measured ours ./bench "${small[@]}" -json -steps "$steps" -warmup "$((steps / 10))" -backend "$engine" "$@"; }
  peer() { measured peer python3 step.py --steps "$peer_steps" --threads "$(nproc)" "$@"; }
  if [ "$workload" = kernels ]; then
    measured ours ./cuda.test -test.run '^TestKernelTimes$' -rows "$rows"
    return
  fi
  ours -workload "$workload"
  ours -workload "$workload" -recorded
  if [ "$engine" = cuda-emulator ]; then
    peer --workload "$workload" --layers sparse
    return
  fi
  ours -workload "$workload" -recorded -tf32
  ours -workload "$workload" -recorded -backend cuda-3xtf32
  for mode in eager ${SPECMATCH_GPU_COMPILE:+compile} graph; do
    peer --device cuda --workload "$workload" --mode $mode
    peer --device cuda --workload "$workload" --mode $mode --tf32
  done
}

# tables prints the tables of all times.
tables() {
  python3 - "$work" <<'PYTHON'
import glob, json, re, sys

results = [json.loads(line) for f in sorted(glob.glob(sys.argv[1] + "/*.json") + glob.glob(sys.argv[1] + "/*.failed"))
           if "/curve-" not in f for line in open(f) if line.startswith("{")]
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
    if "failed" in r:
        option = lambda name: (re.search(rf"--?{name} (\S+)", r["command"]) or ["", ""])[1]
        if not option("workload"):
            continue # the kernels
        tf32, mode = "tf32" in r["command"], option("mode") or ("recorded" if "-recorded" in r["command"] else "eager")
        name = f"PyTorch, {mode}" if r["who"] == "peer" else f"specmatch, {option('backend')}, {mode}"
        steps.append([option("workload"), name, onoff(tf32), "failed: " + r["failed"]] + [""] * 8)
        kinds = ["ours"] if r["who"] == "ours" else ["PyTorch"] + ["PyTorch eager"] * (mode == "eager")
        for kind in kinds: # no ratio without it
            best.setdefault((option("workload"), tf32), {})[kind] = None
        continue
    if "median_ms" in r:
        t, tf32 = r["median_ms"], r["tf32"]
        name = f"PyTorch {r['torch']}, {r['mode']}"
        step, augment, train, device, busy = t["total"], t["augment"], r["train_ms"], r["device_ms"], None
        kinds = ["PyTorch"] + ["PyTorch eager"] * (r["mode"] == "eager")
    else:
        tf32 = r["backend"] == "cuda-tf32"
        name = f"specmatch, {r['backend']}, {'recorded' if r['recorded'] else 'eager'}"
        step, augment, train, device, busy = r["ms_per_step"], r["ms_augment"], r["ms_train"], r["ms_device"] or None, r["device_busy"] or None
        kinds = ["ours"]
    floor, workload = r.get("floor"), f"{r['workload']}, batch {r['batch']}"
    for kind in kinds:
        old = best.setdefault((r["workload"], tf32), {}).get(kind, train)
        best[r["workload"], tf32][kind] = None if old is None else min(train, old)
    steps.append([workload, name, onoff(tf32), *map(number, (step, augment, train, device)), number(busy, 2), *reached(floor), number(r["loss"])])
    if floor:
        parts = floor["ms_launches"], floor["ms_bytes"], floor["ms_products"]
        rates = 1e3 * parts[0] / floor["launches"], floor["mbytes"] / parts[1], floor["mflops"] / parts[2]
        floors.append([workload, name, f"{floor['launches']:.0f}", number(floor["mbytes"], 1), number(floor["mflops"], 0),
                       number(rates[0], 2), number(rates[1], 1), number(rates[2], 1), *map(number, parts), number(device or train)])
table("""
#### Steps

All times are in milliseconds. A step makes two augmented views, then runs forward, losses, backward and Adam; the
column has the median. specmatch augments while the device works; PyTorch augments first, in NumPy. Train is the
mean time of steps on eight batches, in turn, that are ready in pinned memory, with one wait at the end. Device is the
time of a recorded step, or of a CUDA graph, alone; busy is device/step. The floor (see below) is compared with
device, or with train for eager steps.
""", "workload | implementation | TF32 | step: | augment: | train: | device: | busy: | floor: | reached: | binds | loss:", steps)
ratio = lambda a, b: number(a / b, 1) if a and b else "" # a failure leaves it out
table("", "workload | TF32 | PyTorch eager / ours, train: | best PyTorch / ours, train:",
      [[w, onoff(tf32)] + [ratio(b.get(kind), b.get("ours")) for kind in ("PyTorch eager", "PyTorch")] for (w, tf32), b in best.items()])
table("""
#### Floors

A floor is a lower bound on the time of a step, the largest of three times: of the launches, at the cost of one that
does almost nothing, eager or recorded; of the bytes of all operands, each read or written once, at the rate of large
copies; and of the operations of the products, at the best rate of a square product of up to 4096. The engine counts
the work, and the rates are measured in the same process. Data that stays in cache between two kernels moves faster
than a copy, so a step bound by bytes can beat its floor.
""", "workload | implementation | launches: | MB: | MFLOP: | µs a launch: | GB/s: | GFLOP/s: | ms of launches: | of bytes: | of products: | measured:", floors)
kernels = []
for r in results:
    if "kernel" in r:
        floor, rate = r["floor"], lambda v: number(v / r["ms"], 1) if v else ""
        us, share, binds = number(1e3 * floor["ms"], 1), *reached(floor)[1:]
        kernels.append([f"{r['backend']} {r['precision']}", r["kernel"], number(1e3 * r["ms"], 1), us, share, binds, rate(floor["mbytes"]), rate(floor["mflops"])])
table("""
#### Kernels

Each kernel alone, eager, in microseconds.
""", "engine | kernel | time: | floor: | reached: | binds | GB/s: | GFLOP/s:", kernels)
PYTHON
}

case "${1:-} $#" in
"build 2") build "$2" ;;
"run 1") usage ;;
"run "*) run "${@:2}" ;;
*) usage ;;
esac
