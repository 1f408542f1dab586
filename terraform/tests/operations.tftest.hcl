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
}

run "first_by_name" {
  command = plan

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-1"
    error_message = "Without being told, the first cluster by name is written to."
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
}

run "sizes" {
  command = plan

  variables {
    functions = {
      profiles = { min_instances = 2, memory = "1Gi" }
      worker   = { max_instances = 20 }
    }
  }

  assert {
    condition     = local.size["profiles"].min_instances == 2 && local.size["profiles"].memory == "1Gi" && local.size["profiles"].concurrency == local.sizes.profiles.concurrency
    error_message = "A size that is told should be taken, and the others left: ${jsonencode(local.size["profiles"])}"
  }
}
