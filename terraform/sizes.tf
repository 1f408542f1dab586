locals {
  # What an instance of each function is given, and how many there may be. None
  # is kept warm: in production have var.functions say so.
  sizes = {
    # Clients wait for these: much at once, little work each.
    ingest   = { cpu = "1", memory = "512Mi", concurrency = 80, max_instances = 10, timeout_seconds = 60 }
    profiles = { cpu = "1", memory = "512Mi", concurrency = 80, max_instances = 10, timeout_seconds = 60 }
    catalog  = { cpu = "1", memory = "512Mi", concurrency = 40, max_instances = 5, timeout_seconds = 60 }

    # These read or write much for one request.
    imports    = { cpu = "1", memory = "1Gi", concurrency = 8, max_instances = 4, timeout_seconds = 300 }
    strategies = { cpu = "1", memory = "1Gi", concurrency = 10, max_instances = 4, timeout_seconds = 120 }
    recomputes = { cpu = "1", memory = "1Gi", concurrency = 10, max_instances = 4, timeout_seconds = 120 }

    # process shares refreshes between the messages of an instance, so that more
    # at once cost less each; one may take minutes, and Pub/Sub waits no longer
    # than ten. worker holds whole chunks of users; Cloud Tasks
    # waits ten minutes for it.
    process = { cpu = "1", memory = "1Gi", concurrency = 40, max_instances = 10, timeout_seconds = 540 }
    worker  = { cpu = "1", memory = "2Gi", concurrency = 4, max_instances = 5, timeout_seconds = 600 }
  }
}
