# What is done to a deployment that lives.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null
  clusters = {
    cluster-1 = { zone = "europe-west1-b", min_nodes = 3, max_nodes = 9 }
    cluster-2 = { zone = "europe-west1-c", min_nodes = 3, max_nodes = 9 }
  }
  primary_cluster = "cluster-1"
  customers       = { acme = { host = "acme.example.com", app_id = "acme_shop", schedule = "30 1 * * *" } }
}

# A cluster that comes first by name does not take the writes over.
run "cluster_that_is_added" {
  command = plan

  variables {
    clusters = {
      cluster-0 = { zone = "europe-west1-d" }
      cluster-1 = { zone = "europe-west1-b" }
    }
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-1"
    error_message = "Another cluster is written to since one was added."
  }
}

run "nobody_says_which" {
  command = plan

  variables {
    primary_cluster = null
  }

  expect_failures = [var.primary_cluster]
}

run "one_that_is_not_cluster_1" {
  command = plan

  variables {
    clusters        = { cluster-2 = { zone = "europe-west1-c" } }
    primary_cluster = null
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-2"
    error_message = "The one cluster there is is not written to."
  }
}

run "failover" {
  command = plan

  variables {
    primary_cluster = "cluster-2"
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-2"
    error_message = "The cluster that is written to does not change."
  }
}

# Nothing that draws tickets may run; events and reads go on.
run "paused" {
  variables {
    paused = true
  }

  assert {
    condition     = length(module.function["imports"].invokers) == 0
    error_message = "Imports still write."
  }

  assert {
    condition     = alltrue([for name in ["ingest", "profiles"] : module.function[name].invokers == tolist(["allUsers"])])
    error_message = "Events and reads should go on."
  }

  assert {
    condition     = module.events.push_endpoint == null
    error_message = "Events are still pushed to process."
  }

  assert {
    condition     = module.tasks.waiting == tolist(["affinity-nightly", "affinity-nightly-acme", "worker"])
    error_message = "Tasks or rounds are still carried out; only these wait: ${join(", ", module.tasks.waiting)}"
  }
}

run "goes_on" {
  assert {
    condition     = module.events.push_endpoint == "${module.function["process"].uri}/" && length(module.tasks.waiting) == 0 && module.function["imports"].invokers == tolist(["allUsers"])
    error_message = "After the pause something still waits: ${jsonencode(module.tasks.waiting)}"
  }

  # The addresses of the two, and not of any function.
  assert {
    condition     = module.tasks.queue_host == trimprefix(module.function["worker"].uri, "https://") && length(distinct([for f in module.function : f.uri])) == length(module.function)
    error_message = "Tasks go to ${module.tasks.queue_host}, the worker is at ${module.function["worker"].uri}."
  }
}

run "sizes" {
  command = plan

  variables {
    run_quota = { cpu = 40, memory_gib = 60 }
    functions = {
      profiles = { min_instances = 2, memory = "1Gi" }
      worker   = { max_instances = 20 }
    }
  }

  assert {
    condition     = local.size["profiles"].min_instances == 2 && local.size["profiles"].memory == "1Gi" && local.size["profiles"].concurrency == local.sizes.profiles.concurrency
    error_message = "A size in var.functions should apply, and leave the others alone: ${jsonencode(local.size["profiles"])}"
  }
}

# A restore makes another instance and another database, which every function then uses.
run "restored" {
  command = plan

  variables {
    bigtable_instance  = "affinity-2"
    firestore_database = "affinity-3"
  }

  assert {
    condition     = alltrue([for f in module.function : f.environment.BIGTABLE_INSTANCE == "affinity-2" && f.environment.FIRESTORE_DATABASE == "affinity-3"])
    error_message = "A function still uses the instance or database that was lost."
  }

  assert {
    condition     = output.bigtable.instance == "affinity-2" && strcontains(output.next_steps, "--database affinity-3")
    error_message = "The outputs name the instance or database that was lost: ${output.next_steps}"
  }
}
