#!/bin/sh
# Writes symbols.h: sh symbols.sh DIR, with cuda.h of CUDA 12 in DIR.
set -eu
cd "$(dirname "$0")"
cu=$(go list -m -f '{{.Dir}}' gorgonia.org/cu)
{
  echo '#include <cuda.h>'
  # Called from Go as C.cuX(…), from C as cuX(…); both through macros.
  { grep -hoE 'C\.cu[A-Z][A-Za-z0-9_]*\(' "$cu"/*.go device.go; grep -hoE '\bcu[A-Z][A-Za-z0-9_]*\(' "$cu"/*.c "$cu"/*.h table.c; } |
    sed 's/^C\.//; s/($//' | sort -u | sed 's/^/SYMBOL /'
} | gcc -E -I"$1" -xc - | sed -n 's/^SYMBOL //p' | sort -u > names
{
  sed -n '/^\/\//p' symbols.h
  # What the header does not declare is a function of the binding's own. cuInit
  # is defined in delay.c.
  while read -r name; do
    if grep -qw "$name" "$1/cuda.h" && [ "$name" != cuInit ]; then echo "S($name)"; fi
  done < names
} > symbols.new
mv symbols.new symbols.h
rm names
