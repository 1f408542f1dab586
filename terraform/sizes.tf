locals {
  # The size of an instance of each function, and the maximum number of instances.
  # Together they fit the Cloud Run quota of a new project (var.run_quota). No
  # instance is kept warm; in production set min_instances in var.functions.
  sizes = {
    # Clients wait for these functions, which do little work for each of many requests.
    ingest   = { cpu = "1", memory = "512Mi", concurrency = 80, max_instances = 3, timeout_seconds = 60 }
    profiles = { cpu = "1", memory = "512Mi", concurrency = 80, max_instances = 3, timeout_seconds = 60 }
    catalog  = { cpu = "1", memory = "512Mi", concurrency = 40, max_instances = 1, timeout_seconds = 60 }
    # rank keeps candidates, records and statistics in memory, up to 450 MB, and a request
    # may have candidates of 32 MiB.
    rank = { cpu = "1", memory = "1536Mi", concurrency = 40, max_instances = 2, timeout_seconds = 60 }
    # console serves people. It makes the requests of the other public functions in its process, so it
    # has rank's caches. Some of these requests take as long as those of strategies. It is
    # deployed only with console_host.
    console = { cpu = "1", memory = "2Gi", concurrency = 16, max_instances = 1, timeout_seconds = 120 }
    # docs answers with pages that do not change, which clients cache.
    docs = { cpu = "1", memory = "256Mi", concurrency = 80, max_instances = 1, timeout_seconds = 10 }

    # These functions read or write much data for one request.
    imports    = { cpu = "1", memory = "1Gi", concurrency = 8, max_instances = 1, timeout_seconds = 300 }
    strategies = { cpu = "1", memory = "1Gi", concurrency = 10, max_instances = 1, timeout_seconds = 120 }
    # An export of a user with ten million events takes minutes.
    admin = { cpu = "1", memory = "1Gi", concurrency = 10, max_instances = 1, timeout_seconds = 600 }
    # segments keeps rows of lists and profiles in memory, up to 64 MB. A file of millions of users takes
    # minutes, too.
    segments = { cpu = "1", memory = "1Gi", concurrency = 10, max_instances = 1, timeout_seconds = 600 }

    # process shares refreshes between the messages of an instance, so more messages
    # at once cost less each. A message can take minutes; Pub/Sub waits at most ten.
    # worker holds whole chunks of users in memory; Cloud Tasks waits ten minutes.
    process = { cpu = "1", memory = "1Gi", concurrency = 40, max_instances = 3, timeout_seconds = 540 }
    worker  = { cpu = "1", memory = "2Gi", concurrency = 6, max_instances = 2, timeout_seconds = 600 }
    # process-slow runs process for the events of apps that are over their limit. They wait
    # here, and not before the events of other apps.
    process-slow = { cpu = "1", memory = "1Gi", concurrency = 8, max_instances = 1, timeout_seconds = 540 }
  }

  # What each function can use at its maximum: vCPUs, and GiB of memory. A size that
  # is not in this form counts as nothing here; modules/function refuses it.
  run_maximum = { for key, s in local.size : key => {
    cpu        = s.max_instances * try(tonumber(s.cpu), 0)
    memory_gib = s.max_instances * try(tonumber(trimsuffix(s.memory, "Gi")), tonumber(trimsuffix(s.memory, "Mi")) / 1024, 0)
  } }
  run_total = {
    cpu        = sum([for m in values(local.run_maximum) : m.cpu])
    memory_gib = sum([for m in values(local.run_maximum) : m.memory_gib])
  }
}
