/* fact_list.h: every number a rule may look at: FACT(NAME, metric, unit, source).
 *
 * `metric` and `unit` are what evidence in report.json says; `source` how it came about.
 * A fact nobody measured is NaN. Included several times: no guard. Private to analyse/. */

/* ---- Time of the run, main thread (account.h) ---- */
FACT(RUN_S, "duration", "s", "launcher")
FACT(LOOP_S, "loop", "s", "zones, first step to last")
FACT(STEPS, "steps", "1", "zones")
FACT(STEP_MS, "step_p50", "ms", "zones, steady steps")
FACT(STEP_MEAN_MS, "step_mean", "ms", "zones, steady steps")
FACT(STEP_P99_MS, "step_p99", "ms", "zones, steady steps")
FACT(STEADY_SHARE, "steady_steps_share", "share", "zones, of the loop")
FACT(STARTUP_S, "startup", "s", "zones")
FACT(STARTUP_SHARE, "startup_share", "share", "zones")
FACT(IMPORT_S, "imports", "s", "Python stacks")
FACT(IMPORT_CPU_S, "imports_cpu", "s", "Python stacks")
FACT(WARMUP_SHARE, "warmup_share", "share", "zones")
FACT(EPOCH_SHARE, "epoch_change_share", "share", "zones, of the loop")
FACT(EPOCHS, "epochs", "1", "zones")
FACT(CHECKPOINT_SHARE, "checkpoint_share", "share", "zones, of the loop")
FACT(CHECKPOINTS, "checkpoints", "1", "zones")
FACT(EVALUATION_SHARE, "evaluation_share", "share",
     "zones and what lies between them, of the loop")
FACT(EVALUATIONS, "evaluations", "1", "zones")
FACT(CHECKPOINT_BESIDE, "beside_checkpoints_share", "share",
     "zones, of the loop: steps with one against steps without")
FACT(EVALUATION_BESIDE, "beside_evaluations_share", "share",
     "zones, of the loop: steps with one against steps without")
FACT(SLOW_STEP_SHARE, "slow_steps_share", "share",
     "zones, steps beyond twice the median")
FACT(SLOW_STEPS, "slow_steps", "1", "zones")
FACT(DRIFT, "step_drift", "share", "zones, Theil-Sen")

/* ---- Shares of steady steps, main thread ---- */
FACT(WAIT_SHARE, "data_wait_share", "share", "zones, steady steps")
FACT(PREPROCESSING_SHARE, "preprocessing_share", "share", "zones, steady steps")
FACT(COLLATE_SHARE, "collate_share", "share", "zones, steady steps")
FACT(INPUT_SHARE, "input_share", "share", "zones, steady steps")
FACT(TRANSFER_SHARE, "transfer_share", "share", "zones, steady steps")
FACT(FORWARD_SHARE, "forward_share", "share", "zones, steady steps")
FACT(BACKWARD_SHARE, "backward_share", "share", "zones, steady steps")
FACT(OPTIMIZER_SHARE, "optimizer_share", "share", "zones, steady steps")
FACT(SYNC_SHARE, "sync_share", "share", "zones, steady steps")
FACT(COMMUNICATION_SHARE, "communication_share", "share", "zones, steady steps")
FACT(COLLECTIVES, "collectives_per_step", "1", "zones: calls that talk to other ranks")
FACT(EXCHANGE_SHARE, "gradient_exchange_share", "share",
     "DistributedDataParallel's timers: what backward does not hide, of a step")
FACT(EXCHANGE_HIDDEN, "gradient_exchange_hidden", "share",
     "DistributedDataParallel's timers: of the exchange, behind backward")
FACT(EXCHANGE_MB, "gradient_exchange_mb", "MiB", "DistributedDataParallel")
FACT(EXCHANGE_BUCKETS, "gradient_buckets", "1", "DistributedDataParallel")
FACT(OTHER_SHARE, "other_share", "share", "zones, steady steps")

/* ---- The loader (loaders.h) ---- */
FACT(WORKERS, "num_workers", "1", "DataLoader")
FACT(PREFETCH, "prefetch_factor", "1", "DataLoader")
FACT(PERSISTENT, "persistent_workers", "1", "DataLoader")
FACT(ITERABLE, "iterable_data_set", "1", "DataLoader")
FACT(PIN_MEMORY, "pin_memory", "1", "DataLoader")
FACT(BATCH_SIZE, "batch_size", "1", "DataLoader")
FACT(BATCH_ROWS, "batch_rows", "1",
     "rows the trained model gives results for, no loader: the batch or more")
FACT(POSITIONS, "layers_over_positions", "1",
     "Python layer: layers of the model that see many rows a sample")
FACT(BATCH_MB, "batch_size_mb", "MiB", "DataLoader")
FACT(SAMPLE_MS, "sample_time", "ms", "loader, mean")
FACT(SAMPLE_CPU_SHARE, "sample_cpu_share", "share", "loader, CPU over wall of a batch")
FACT(SAMPLE_TAIL, "sample_p995_over_p50", "1", "loader")
FACT(SLOW_SAMPLE_SHARE, "slow_samples_share", "share", "loader, time beyond 4 medians")
FACT(SLOW_BATCH_SHARE, "slow_batches_share", "share",
     "loader, time beyond 2 medians of a batch")
FACT(BATCH_MS, "batch_time", "ms", "loader, mean in a worker")
FACT(SEND_MS, "sending_a_batch", "ms", "loader, pickling and sending in a worker")
FACT(BATCH_CPU_MS, "batch_cpu_time", "ms", "loader, mean CPU time of making it")
FACT(COLLATE_OF_BATCH, "collate_of_batch", "share", "loader")
FACT(TRANSFORM_OF_SAMPLE, "transform_of_sample", "share", "loader")
FACT(LOAD_LINE_SHARE, "slowest_line_of_loading", "share",
     "Python stacks, no workers: one line's part of the time to load")
FACT(QUEUE_EMPTY_SHARE, "queue_empty_share", "share", "loader")
FACT(QUEUE_WAIT_SHARE, "queue_wait_share", "share",
     "loader, of a step: nothing to take, or a worker that did not answer")
FACT(WORKER_BUSY_SHARE, "worker_busy_share", "share", "loader")
FACT(CROWDED_SHARE, "cores_taken_by_workers", "share",
     "loader and monitors, no core idle")
FACT(PADDING_SHARE, "padding_share", "share", "pad_sequence and attention_mask")
FACT(LENGTHS_GAIN, "gain_from_like_lengths", "share",
     "loader: step time by bytes of a batch, fitted")
FACT(WORKERS_GAIN, "gain_from_workers", "share", "what-if model")
FACT(WORKERS_GAIN_LOW, "gain_from_workers_low", "share", "what-if model")
FACT(WORKERS_GAIN_HIGH, "gain_from_workers_high", "share", "what-if model")
FACT(TRANSFORM_GAIN, "gain_from_faster_transform", "share",
     "what-if model, a few operators a sample")
FACT(TRANSFORM_GAIN_LOW, "gain_from_faster_transform_low", "share",
     "what-if model, twice as fast")
FACT(TRANSFORM_GAIN_HIGH, "gain_from_faster_transform_high", "share",
     "what-if model, free")
FACT(EVEN_GAIN, "gain_from_even_samples", "share", "what-if model")
FACT(EVEN_GAIN_LOW, "gain_from_even_samples_low", "share", "what-if model")
FACT(EVEN_GAIN_HIGH, "gain_from_even_samples_high", "share", "what-if model")
FACT(COLLATE_GAIN, "gain_from_plain_collate", "share",
     "what-if model, one copy of the batch")
FACT(COLLATE_GAIN_LOW, "gain_from_plain_collate_low", "share", "what-if model")
FACT(COLLATE_GAIN_HIGH, "gain_from_plain_collate_high", "share", "what-if model")
FACT(OPENS_GAIN, "gain_from_few_files", "share", "what-if model, one read a sample")
FACT(OPENS_GAIN_LOW, "gain_from_few_files_low", "share", "what-if model")
FACT(OPENS_GAIN_HIGH, "gain_from_few_files_high", "share", "what-if model")
FACT(READS_GAIN, "gain_from_large_reads", "share", "what-if model, one read a sample")
FACT(READS_GAIN_LOW, "gain_from_large_reads_low", "share", "what-if model")
FACT(READS_GAIN_HIGH, "gain_from_large_reads_high", "share", "what-if model")
FACT(WORKERS_BEST, "best_workers", "1", "what-if model")
FACT(FEWER_WORKERS_LOSS, "loss_with_half_the_workers", "share", "what-if model")
FACT(WORKER_START_S, "worker_start", "s", "loader")
FACT(FIRST_WAIT_S, "wait_for_first_batch", "s", "loader, workers started")

/* ---- Processors ---- */
FACT(CORES, "cores", "1", "machine")
FACT(CPU_CORES, "cpu_used", "cores", "launcher and monitors")
FACT(IDLE_CORES, "cores_idle", "cores", "monitors")
FACT(FREE_CORES, "cores_without_work", "cores",
     "monitors and native stacks, idle or spinning")
FACT(SYSTEM_BUSY, "cpu_system_share", "share", "monitors")
FACT(FOREIGN_CORES, "cpu_of_others", "cores", "monitors")
FACT(IOWAIT_SHARE, "iowait_share", "share", "monitors")
FACT(IO_PRESSURE, "pressure_io_full", "share", "monitors, PSI")
FACT(CPU_PRESSURE, "pressure_cpu", "share", "monitors, PSI")
FACT(RUNNABLE, "runnable_per_core", "1", "monitors")
FACT(THREADS, "threads", "1", "monitors")
FACT(BUSY_THREADS, "busy_threads", "1", "monitors")
FACT(SWITCHES, "context_switches", "1/s", "monitors")
FACT(TURNS, "involuntary_switches_per_cpu_second", "1/s", "monitors")
FACT(SLEEPS, "voluntary_switches_per_cpu_second", "1/s", "monitors")
FACT(SPIN_SHARE, "spinning_share", "share", "native stacks")
FACT(AWAIT_SHARE, "waiting_for_threads_share", "share",
     "native stacks: spinning, libraries of threads, tight loops of a JIT")
FACT(WORK_CORES, "cores_at_work", "cores",
     "native stacks, in the loop: CPU time without waiting for threads")
FACT(SERIAL_CORES, "cores_at_work_alone", "cores",
     "native stacks, in the loop: interpreter, framework, allocator")
FACT(CHILD_CORES, "cores_at_work_in_children", "cores",
     "native stacks, in the loop: of cores_at_work, other processes than the main one")
FACT(CHILD_SERIAL_CORES, "cores_at_work_alone_in_children", "cores",
     "native stacks, in the loop: what each of their threads does alone")
FACT(BESIDE_CORES, "cores_at_work_beside", "cores",
     "native stacks: other Python threads of the main process, not in cores_at_work")
FACT(CHILDREN_AT_WORK, "children_at_work", "count", "native stacks")
FACT(CPU_LIMIT, "cpu_quota", "cores", "monitors, cgroup")
FACT(THROTTLED_SHARE, "throttled_share", "share", "monitors, cgroup")
FACT(THROTTLED_PERIODS, "throttled_periods", "share", "monitors, cgroup")
FACT(NUMA_REMOTE, "numa_remote_share", "share", "monitors")

/* ---- Memory ---- */
FACT(RSS_MB, "peak_rss", "MiB", "monitors")
FACT(MEMORY_LIMIT_MB, "memory_limit", "MiB", "monitors, cgroup or machine")
FACT(MEMORY_SHARE, "memory_of_limit", "share", "monitors")
FACT(MEMORY_PRESSURE, "pressure_memory", "share", "monitors, PSI")
FACT(GROWTH_MB, "rss_growth", "MiB", "monitors, Theil-Sen over the steady part")
FACT(GROWTH_MB_PER_MIN, "rss_growth_rate", "MiB/min", "monitors")
FACT(GROWTH_LATE, "rss_growth_late_over_early", "1", "monitors")
FACT(LEAK_MB, "leaked", "MiB", "allocation sites")
FACT(LEAK_KB_PER_STEP, "leak_per_step", "KiB", "allocation sites")
FACT(LIVE_MB, "live_heap", "MiB", "allocations")
FACT(LIVE_PEAK_MB, "live_heap_peak", "MiB",
     "allocations, of the process that held most")
FACT(LIVE_PEAK_AT, "live_heap_peak_at", "share",
     "allocations: of the time of steady steps, when the heap was highest")
FACT(FRAGMENTATION, "rss_over_live_heap", "1", "allocations and monitors")
FACT(WORKER_GROWTH_MB, "worker_private_growth", "MiB", "monitors, all workers")
FACT(WORKER_COPIED_MB, "worker_pages_copied", "MiB",
     "workers: smaps_rollup at their first batch and their end; of those that looked")
FACT(DATASET_OBJECTS, "large_containers_of_objects", "1",
     "loader, attributes of the data set")
FACT(WORKER_PRIVATE_MB, "worker_private", "MiB", "monitors, all workers at the end")
FACT(SWAP_MB, "swap", "MiB", "monitors")
FACT(MAJOR_FAULTS, "page_faults_major", "1/s", "monitors")
FACT(FAULTS_PER_STEP, "page_faults_per_step", "1", "monitors")
FACT(FAULT_SHARE, "page_fault_time_share", "share",
     "page faults beyond growth at 1 µs and up, modelled")
FACT(FAULT_KERNEL_SHARE, "page_fault_kernel_share", "share",
     "page faults, at what native stacks in the kernel say of one")
FACT(HUGE_BLOCKS_SHARE, "huge_blocks_share", "share",
     "allocations beyond 32 MiB, their pages cleared anew, modelled")
FACT(FAULT_TOUCH_SHARE, "page_fault_user_share", "share",
     "page faults beyond growth at 0.25 µs of the program's own code, modelled")
FACT(ALLOCS_PER_STEP, "allocations_per_step", "1", "allocations")
FACT(ALLOC_MB_PER_STEP, "allocated_per_step", "MiB", "allocations")
FACT(TURNOVER, "allocated_over_kept", "1",
     "allocations over growth of resident memory, steady steps")
FACT(ALLOC_SHARE, "allocator_share", "share", "native stacks")
FACT(BATCH_FITS, "batch_that_fits_over_largest", "1",
     "modelled: live heap by bytes of the batch, fitted")
FACT(BATCH_POSSIBLE, "possible_batch_over_batch_that_fits", "1",
     "modelled: as many of the largest sample seen as are in a batch")
FACT(BATCH_LIKELY, "likely_batch_over_batch_that_fits", "1",
     "modelled: one batch in 10,000")
FACT(BATCH_ALL_SEEN, "data_set_seen", "1", "loader: a whole pass")
FACT(LARGEST_BATCH_MB, "largest_batch", "MiB", "loader")
FACT(SHM_SHARE, "shm_used_share", "share", "monitors, /dev/shm")
FACT(SHM_MB, "shm_used", "MiB", "monitors, /dev/shm")

/* ---- Files ---- */
FACT(OPEN_SHARE, "open_time_share", "share", "I/O capture, of the readers' time")
FACT(OPENS_PER_STEP, "opens_per_step", "1", "I/O capture")
FACT(LOOKS_PER_STEP, "looks_per_step", "1", "I/O capture, stat and folders listed")
FACT(READ_SHARE, "read_time_share", "share", "I/O capture, of the readers' time")
FACT(READS_PER_STEP, "reads_per_step", "1", "I/O capture")
FACT(READ_KB, "read_size", "KiB", "I/O capture, mean")
FACT(SMALL_READ_SHARE, "small_reads_share", "share", "I/O capture, below 4 KiB")
FACT(COLD_SHARE, "cold_share", "share", "I/O capture, page cache before first reads")
FACT(SYNC_IO_SHARE, "fsync_share", "share", "I/O capture")
FACT(WRITE_SHARE, "write_time_share", "share", "I/O capture")
FACT(OPEN_AT_END, "open_descriptors", "1", "I/O capture, at the end")
FACT(OPEN_GROWS, "open_descriptors_grow", "1", "I/O capture")

/* ---- Python ---- */
FACT(GIL_WAIT_SHARE, "gil_wait_share", "share", "Python stacks, main thread")
FACT(MAIN_CPU_SHARE, "main_thread_cpu_share", "share",
     "Python stacks: CPU time of the main thread in the loop")
FACT(GC_SHARE, "gc_share", "share", "Python stacks, main thread")
FACT(GC_LIKELY_SHARE, "gc_share_likely", "share",
     "Python stacks, main thread; imports and the end apart")
FACT(GC_BESIDE_SHARE, "beside_gc_share", "share",
     "zones and Python stacks: outside of phases, without the line that collects")
FACT(LOCK_SHARE, "lock_wait_share", "share",
     "Python stacks, main thread: waiting in the with statement of a lock")
FACT(LOG_SHARE, "logging_share", "share", "Python stacks and zones, main thread")
FACT(LOG_WHOLE_SHARE, "function_that_logs_share", "share", "Python stacks, main thread")
FACT(OWN_SHARE, "own_functions_share", "share",
     "Python stacks and zones, steady steps: functions of the program beside training")
FACT(OWN_CPU_S, "own_functions_cpu", "s", "Python stacks and zones, steady steps")
FACT(COMPILE_SHARE, "compile_share", "share", "Python stacks, main thread")
FACT(PYTHON_SHARE, "interpreter_share", "share", "native stacks")

/* ---- Native code ---- */
FACT(REFERENCE_BLAS_SHARE, "reference_blas_share", "share", "native stacks")
FACT(REFERENCE_BLAS_WALL_SHARE, "reference_blas_of_run", "share",
     "native stacks, over the run's time")
FACT(DOUBLE_SHARE, "float64_kernels_share", "share", "native stacks")
FACT(KERNEL_SHARE, "compute_kernels_share", "share", "native stacks")
FACT(ARITHMETIC_SHARE, "arithmetic_share", "share",
     "native stacks, in the loop: BLAS, vector functions, a JIT's code")
FACT(OVERHEAD_SHARE, "framework_share", "share", "native stacks")
FACT(OWN_CPU_SHARE, "own_functions_cpu_share", "share",
     "Python and native stacks: functions of the program beside training")

/* ---- Cards ---- */
FACT(GPUS, "gpus", "1", "machine")
FACT(GPU_BUSY, "gpu_busy_share", "share", "NVML")
FACT(GPU_OWN, "gpu_processes", "1", "NVML")
FACT(GPU_MEMORY_SHARE, "gpu_memory_share", "share", "NVML")
FACT(GPU_MEMORY_MB, "gpu_memory", "MiB", "NVML")
FACT(GPU_GROWTH_MB, "gpu_memory_growth", "MiB", "NVML, Theil-Sen")
FACT(GPU_GROWTH_LATE, "gpu_memory_growth_late_over_early", "1", "NVML")
FACT(GPU_THROTTLED_SHARE, "gpu_throttled_share", "share", "NVML")
FACT(GPU_CLOCK_SHARE, "gpu_clock_of_max", "share", "NVML")
FACT(GPU_FOREIGN, "gpu_processes_of_others", "1", "NVML")
FACT(KERNELS_PER_STEP, "kernels_per_step", "1", "CUPTI")
FACT(KERNEL_US, "kernel_time", "us", "CUPTI, median")
FACT(LAUNCH_SHARE, "launch_share", "share", "CUPTI, host time in operators that launch")
FACT(TENSOR_CORE_SHARE, "tensor_core_share", "share", "CUPTI, kernels by name")
FACT(GPU_ALLOC_SHARE, "cuda_malloc_share", "share", "CUPTI")
FACT(GPU_ALLOC_RETRIES, "cuda_malloc_retries", "1", "torch allocator")
FACT(GPU_BATCH_FITS, "gpu_batch_that_fits_over_largest", "1",
     "modelled: peaks of torch's allocator by bytes of the batch, fitted")
FACT(GPU_BATCH_POSSIBLE, "gpu_possible_batch_over_batch_that_fits", "1",
     "modelled: as many of the largest sample seen as are in a batch")
FACT(GPU_BATCH_LIKELY, "gpu_likely_batch_over_batch_that_fits", "1",
     "modelled: one batch in 10,000")
FACT(PCIE_SHARE, "pcie_of_peak", "share", "NVML")

/* ---- Ranks ---- */
FACT(RANKS, "world_size", "1", "launcher")
FACT(STRAGGLER_SHARE, "straggler_share", "share", "zones of all ranks")
FACT(STRAGGLER_STEADY, "straggler_same_rank_share", "share", "zones of all ranks")
FACT(IMBALANCE_SHARE, "rank_imbalance_share", "share", "zones of all ranks")
