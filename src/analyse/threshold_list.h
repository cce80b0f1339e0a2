/* threshold_list.h: every limit of the rules: THRESHOLD(name, default, reference, unit,
 * what it says).
 *
 * The default judges time lost and the distance to this machine's limits. `reference` is
 * the named set with the absolute limits of the reference documents; NaN there: the set
 * leaves it as it is. Names are keys below `rules:` in sonde.yaml. Included several
 * times: no guard. Private to analyse/. */

/* ---- How much must be at stake ---- */
THRESHOLD(critical, 0.40, NAN, "share", "a finding with this much at stake is critical")
THRESHOLD(high, 0.20, NAN, "share", "… high")
THRESHOLD(medium, 0.10, NAN, "share", "… medium; below it is low")

/* ---- Input ---- */
THRESHOLD(data_wait, 0.15, NAN, "share", "of a step spent waiting for its batch")
THRESHOLD(batch_ms, INFINITY, 100, "ms",
          "time to load a batch, whatever the step takes")
THRESHOLD(sample_ms, INFINITY, 1, "ms",
          "time to prepare a sample, whatever the step takes")
THRESHOLD(transform, 0.50, NAN, "share", "of a sample's time in the transform")
THRESHOLD(sample_usual_ms, 0.03, NAN, "ms",
          "a sample of a handful of calls: no transform is worth a word in it")
THRESHOLD(free_cores, 0.5, NAN, "1",
          "cores without work: a loader without workers gets some before its "
          "transform is rewritten")
THRESHOLD(workers_help, 0.10, NAN, "share",
          "of step time that other loader settings save")
THRESHOLD(collate, 0.40, NAN, "share", "of a batch's time in collate")
THRESHOLD(transfer, 0.15, NAN, "share", "of a step in copies to the card")
THRESHOLD(open_time, 0.10, NAN, "share", "of the readers' time in open")
THRESHOLD(small_reads, 0.50, NAN, "share", "of reads below 4 KiB")
THRESHOLD(small_read_time, 0.10, NAN, "share", "of the readers' time in reads")
THRESHOLD(iowait, 0.20, 0.20, "share", "of the time waiting for storage")
THRESHOLD(slow_samples, 0.20, NAN, "share",
          "of the time to load that goes into slow samples")
THRESHOLD(uneven_steps, 0.05, NAN, "share",
          "of the time of steps, and of batches, in slow ones: below, slow samples "
          "stall none")
THRESHOLD(batch_least_ms, 1, NAN, "ms",
          "a batch that is made in less is not worth a word")
THRESHOLD(queue_empty, 0.10, NAN, "share",
          "of asks that find no batch: below, the workers keep up")
THRESHOLD(crowded, 0.3, NAN, "share",
          "of all cores that making batches takes, none being idle")
THRESHOLD(opens_per_step, 2, NAN, "1", "files opened in a step")
THRESHOLD(reads_per_open, 8, NAN, "1",
          "reads of a file: below, it is the opening that costs")
THRESHOLD(sample_tail, 5, NAN, "1", "p99.5 of samples over their median")
THRESHOLD(worker_excess, 0.03, NAN, "share",
          "step time that fewer workers may cost at most")
THRESHOLD(epoch_stall, 0.05, NAN, "share", "of the run at changes of epochs")
THRESHOLD(shm, 0.80, NAN, "share", "of /dev/shm in use")
THRESHOLD(padding, 0.30, NAN, "share", "of batches that is padding")

/* ---- Host ---- */
THRESHOLD(cpu_busy, 0.95, 0.95, "share", "of all cores busy")
THRESHOLD(throttled, 0.05, NAN, "share", "of the time throttled by the CPU quota")
THRESHOLD(runnable, 2.0, NAN, "1", "runnable threads per core")
THRESHOLD(busy_threads, 2.0, NAN, "1", "busy threads of the run per core")
THRESHOLD(team_threads, 4.0, NAN, "1", "threads of the run per core, and …")
THRESHOLD(team_loss, 0.20, NAN, "share",
          "… so much of their CPU time lost to spinning and switches, at most")
THRESHOLD(gil_wait, 0.10, NAN, "share", "of the main thread's time waiting for the GIL")
THRESHOLD(gc, 0.05, NAN, "share", "of the main thread's time in the garbage collector")
THRESHOLD(reference_blas, 0.20, NAN, "share", "of CPU time in the reference BLAS")
THRESHOLD(numa_remote, 0.30, NAN, "share", "of memory accesses to another node")
THRESHOLD(allocator, 0.10, NAN, "share", "of CPU time in the allocator and page faults")
THRESHOLD(churn_usual, 0.20, NAN, "share",
          "of CPU time in page faults of blocks that the C library might have kept: "
          "below, worth a word only")
THRESHOLD(turnover, 4, NAN, "1",
          "allocated over what stays: below, memory grows and is no churn")
THRESHOLD(leak_of_limit, 0.02, NAN, "share",
          "of the memory limit leaked in a run, or …")
THRESHOLD(leak_mb, 32, 100, "MiB", "… this much, and …")
THRESHOLD(leak_of_rss, 0.10, NAN, "share", "… this part of the memory in use")
THRESHOLD(leak_steady, 0.60, NAN, "1",
          "growth of the second half over that of the first")
THRESHOLD(memory, 0.90, NAN, "share", "of the memory limit in use")
THRESHOLD(batch_room, 1.15, NAN, "1",
          "largest batch that fits over the largest seen, while larger ones may come")
THRESHOLD(memory_mb, INFINITY, 16000, "MiB",
          "resident memory, whatever the machine has")
THRESHOLD(worker_growth, 0.05, NAN, "share",
          "of the memory limit by which workers grew, or …")
THRESHOLD(worker_growth_mb, 64, NAN, "MiB", "… this much, and …")
THRESHOLD(worker_growth_each_mb, 32, NAN, "MiB", "… this much each that they allocated")
THRESHOLD(worker_growth_copied_mb, 64, NAN, "MiB",
          "… or copied: half of it may be the interpreter's own objects")
THRESHOLD(worker_growth_own_mb, 128, NAN, "MiB",
          "… or this much each, where the data set holds few objects: the collector "
          "walks over those of the interpreter and its modules once")
THRESHOLD(swap_faults, 20, NAN, "1/s", "major page faults with swap in use")
THRESHOLD(descriptors, 100, NAN, "1", "descriptors left open, rising throughout")

/* ---- Step ---- */
THRESHOLD(optimizer, 0.40, NAN, "share", "of a step in the optimizer")
THRESHOLD(sync, 0.15, NAN, "share", "of a step waiting for the card or for others")
THRESHOLD(launch, 0.30, NAN, "share", "of a step launching kernels")
THRESHOLD(overhead, 0.50, NAN, "share", "of CPU time outside compute kernels in steps")
THRESHOLD(small_batch, 16, NAN, "1", "samples in a batch at most")
THRESHOLD(own_work, 0.60, NAN, "share",
          "of a step outside of all phases: above, its cost is not the batch's size")
THRESHOLD(float64, 0.20, NAN, "share", "of CPU time in float64 kernels")
THRESHOLD(tensor_cores, 0.10, NAN, "share", "of kernel time on tensor cores at most")
THRESHOLD(compile, 0.10, NAN, "share", "of steady time compiling")
THRESHOLD(checkpoint, 0.05, NAN, "share", "of the run in checkpoints")
THRESHOLD(logging, 0.05, NAN, "share", "of the main thread's time logging")
THRESHOLD(evaluation, 0.35, NAN, "share", "of the run in evaluation")
THRESHOLD(startup, 0.25, NAN, "share",
          "of the run before the first step, imports apart, and …")
THRESHOLD(startup_s, 2, NAN, "s", "… at least so long")

/* ---- Cards ---- */
THRESHOLD(gpu_idle, 0.01, NAN, "share", "busy at most: not used")
THRESHOLD(gpu_busy, 0.50, 0.70, "share", "busy at least: below is under-used")
THRESHOLD(gpu_throttled, 0.10, NAN, "share", "of the time clocks were held down")
THRESHOLD(gpu_foreign, 1, NAN, "1", "other people's processes on the card")
THRESHOLD(gpu_memory, 0.95, 0.90, "share", "of the card's memory in use")
THRESHOLD(gpu_growth, 0.05, NAN, "share", "of the card's memory by which the run grew")
THRESHOLD(gpu_alloc, 0.05, NAN, "share", "of a step allocating memory of the card")

/* ---- Ranks ---- */
THRESHOLD(straggler, 0.10, NAN, "share", "of a step the others wait for one rank")
THRESHOLD(straggler_same, 0.60, NAN, "share",
          "of the steps in which it is the same one")
THRESHOLD(imbalance, 0.10, NAN, "share", "of a step lost to uneven work")
THRESHOLD(communication, 0.20, NAN, "share", "of a step in communication")
THRESHOLD(many_collectives, 4, NAN, "1", "calls a step, which one could be instead, …")
THRESHOLD(short_collective_ms, 2, NAN, "ms", "… when each is no longer")
