#!/usr/bin/env bash
# Makes the run directories in this folder with the programs of an earlier version, here
# of commit d15b9c7:
#
#	git worktree add --detach ../old d15b9c7
#	(cd ../old && go build -o bin/ ./experiments/...)
#	bash make.sh ../old/bin [NAME...]
#
# NAME is the folder that the program ran in, NAME/run is the directory of its interrupted
# run, and NAME/want holds what the programs in bin write when they resume that run. With
# KEEP=1 the runs stay as they are and only NAME/want is made. The script needs Linux and
# AVX2. It interrupts a run as soon as a file has grown, so each call may interrupt it some
# batches earlier or later.
set -euo pipefail
bin=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")"
export SPECMATCH_CPU=avx2 GOMAXPROCS=1 PATH=$bin:$PATH

# interrupt SIGNAL CONDITION COMMAND... starts the command and sends it the signal when the
# condition holds. A program that is killed leaves a checkpoint only if -checkpoint has
# asked for one earlier; INT makes it write one.
interrupt() {
  local signal=$1 condition=$2 process
  shift 2
  "$@" > /dev/null 2>&1 &
  process=$!
  until eval "$condition" 2> /dev/null; do
    kill -0 $process || { echo "$* ended too soon"; return 1; }
    sleep 0.002
  done
  kill -"$signal" $process
  ! wait $process 2> /dev/null || { echo "$* was not interrupted"; return 1; }
}

units() { wc -l < run/done.jsonl; }
rows() { wc -l < run/metrics.csv; }

# quietly COMMAND... runs the command to its end.
quietly() { "$@" > /dev/null 2>&1; }

# molecules HEADER CHAIN RING writes chains and rings with their size, and the last column
# of each.
molecules() {
  local n
  echo "$1"
  for n in $(seq 16); do
    local chain=$(printf 'C%.0s' $(seq "$n"))
    echo "${chain}O,0.$n,$2"
    echo "C1C${chain}1N,1.$n,$3"
  done
}

make_unsupervised() {
  quietly unsupervised -method infonce -seeds 1 -epochs 2 -folds 3 -protocol graphcl,linear -out run
  interrupt KILL '[ $(rows) -gt 3 ]' unsupervised -method specmatch -seeds 2 -out run
}

make_semisupervised() {
  quietly semisupervised -method none -seeds 1 -epochs 2 -finetune-epochs 2 -folds 3 -label-rate 0.5 -protocol val -encoder reference -out run
  interrupt KILL '[ $(rows) -gt 1 ]' semisupervised -method infonce -out run
}

# The first start leaves a checkpoint of fine-tuning, the second one of pre-training.
make_transfer() {
  interrupt INT '[ -s run/checkpoints/toy-graphcl-seed-1.safetensors ]' \
    transfer -method graphcl -hidden 4 -layers 2 -batch 32 -corpus-size 200 -epochs 2 -finetune-epochs 2 -finetune-batch 64 -seeds 2 -checkpoint 1ms -out run
  interrupt INT '[ -s run/checkpoints/pretrain-specmatch.safetensors ]' transfer -method specmatch -out run
}

make_ablation() {
  quietly ablation -vary p -p-values 100 -seeds 1 -epochs 2 -folds 3 -protocol linear -out run
  interrupt KILL '[ $(rows) -gt 5 ]' ablation -seeds 2 -out run
}

make_selection() {
  quietly selection -seeds 1 -epochs 2 -eval-every 1 -folds 3 -protocol linear -out run
  interrupt KILL '[ $(rows) -gt 3 ]' selection -tau-values 0.2,0.5 -out run
}

make_theory() {
  quietly theory -seeds 1 -epochs 2 -every 2 -draws 2 -batch 40 -diffusion 1 -out run
  interrupt KILL '[ $(units) -gt 2 ]' theory -seeds 2 -out run
}

make_kernels() {
  interrupt KILL '[ $(units) -gt 2 ]' kernels -method labels,wl,graph2vec -seeds 2 -folds 3 -rounds 2 -dim 8 -epochs 4 -out run
}

make_admet() {
  mkdir data
  molecules smiles,y,split train train > data/caco2_wang.csv
  sed -i '4~3 s/train/test/' data/caco2_wang.csv
  interrupt KILL '[ -s run/done.jsonl ]' admet -data data -dataset caco2_wang -method counts,descriptors -seeds 3 -out run
}

make_train-molecules() {
  molecules smiles,y,z a b > molecules.csv
  interrupt INT '[ -s run/checkpoints/specmatch.safetensors ]' specmatch train -in molecules.csv -hidden 8 -layers 2 -epochs 4 -batch 8 -checkpoint 1ms -out run
}

make_train-graphs() {
  local n
  for n in $(seq 3 26); do # paths and rings
    local edges=$(for i in $(seq $((n - 1))); do echo "[$((i - 1)),$i]"; done | paste -sd,)
    [ $((n % 2)) = 0 ] || edges+=",[0,$((n - 1))]"
    echo "{\"nodes\":$n,\"edges\":[$edges],\"class\":$((n % 2))}"
  done > graphs.jsonl
  interrupt INT '[ -s run/checkpoints/infonce.safetensors ]' specmatch train -in graphs.jsonl -method infonce -hidden 8 -layers 2 -epochs 4 -batch 8 -checkpoint 1ms -out run
}

make_finetune() {
  molecules smiles,y,z a b > molecules.csv
  interrupt INT '[ -s run/checkpoints/seed-1.safetensors ]' \
    specmatch finetune -in molecules.csv -target y -features encoder -hidden 4 -layers 2 -seeds 3 -epochs 6 -batch 8 -checkpoint 1ms -out run
}

# Shards that another build has computed are collected with -mixed only.
make_sweep() {
  printf '%s\n' 'kernels -method labels,wl -seeds 2 -folds 3 -mixed' 'grid -rounds 1 2' > sweep.txt
  interrupt INT '[ -s run/rounds=1/shards/0-of-2/done.jsonl ]' specmatch sweep -in sweep.txt -out run -workers 1 -shares 2
}

resume() {
  case $1 in
  train-*) specmatch train -out run ;;
  finetune) specmatch finetune -out run ;;
  sweep) specmatch sweep -in sweep.txt -out run -workers 1 -shares 2 ;;
  *) "$1" -out run ;;
  esac
}

# strip removes what resuming does not need: the files that a run writes at its end, the log,
# the weights of unfinished units, and the name of the processor.
strip() {
  rm -rf run/plots run/logs run/costs.jsonl run/report.html
  find run -name log.jsonl -o -name '*.svg' -o -name results.json -o -name results.md -o -name tables.md | xargs -r rm
  local file
  for file in run/weights/*; do
    [ ! -e "$file" ] || grep -qF "\"$file\"" <(sed 's,"weights/,"run/weights/,g' run/done.jsonl) || rm "$file"
  done
  find run -type d -empty -delete
  find run -name config.json | xargs sed -i '/"cpu": "[A-Z]/d'
  [ ! -e run/sweep.json ] || sed -i "s,\"$bin/,\",g" run/sweep.json
}

for name in ${*:-$(declare -F | sed -n 's/^declare -f make_//p')}; do
  [ -n "${KEEP-}" ] || rm -rf "$name"
  mkdir -p "$name"
  pushd "$name" > /dev/null
  if [ -z "${KEEP-}" ]; then
    make_"$name"
    strip
  fi
  rm -rf want
  cp -r run stored
  quietly resume "$name"
  case $name in kernels | sweep) find run -name tables.md -exec rm {} + ;; esac # they hold times
  (cd run && find . -name results.json -o -name results.md -o -name tables.md -o -name metrics.csv -size +0 -o -name model.safetensors) |
    while read -r file; do mkdir -p "want/$(dirname "$file")" && cp "run/$file" "want/$file"; done
  rm -rf run
  mv stored run
  popd > /dev/null
done
! grep -rlF -e "$HOME" -e "$bin" -- */ # no paths of this machine
