#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --exclusive --gpus-per-node=4 --cpus-per-task=32 --time=04:00:00
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
export RAY_AUTH_TOKEN=$(openssl rand -hex 32)    # srun hands it on
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 10000))           # others may have a head on the same machine
size="--num-cpus=$SLURM_CPUS_PER_TASK --num-gpus=$SLURM_GPUS_ON_NODE"

srun --overlap -N 1 -n 1 -w "$head" ray start --head --port=$port $size --include-dashboard=false --block &
sleep 20
srun --overlap -N $((SLURM_NNODES - 1)) -n $((SLURM_NNODES - 1)) -x "$head" ray start --address="$head:$port" $size --block &
sleep 20
srun --overlap -N 1 -n 1 -w "$head" \
  speechmeter run grid.yaml --launcher ray --address "$head:$port" -o runs/grid --resume
