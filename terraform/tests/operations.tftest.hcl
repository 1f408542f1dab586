# Changes to a deployment that is in use.

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

# A new cluster does not become the primary one, even if its name comes first.
run "added_cluster" {
  command = plan

  variables {
    clusters = {
      cluster-0 = { zone = "europe-west1-d" }
      cluster-1 = { zone = "europe-west1-b" }
    }
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-1"
    error_message = "The added cluster became the primary one."
  }
}

run "cluster_that_serves_alone" {
  command = plan

  variables {
    clusters        = { cluster-1 = { serves = false }, cluster-2 = { zone = "europe-west1-c" } }
    primary_cluster = "cluster-1"
  }

  assert {
    condition     = module.bigtable.serving_clusters == tolist(["cluster-2"])
    error_message = "Other clusters serve: ${join(", ", module.bigtable.serving_clusters)}"
  }
}

run "data_boost" {
  command = plan

  variables {
    data_boost = true
  }

  assert {
    condition     = [for name, f in module.function : name if try(f.environment.BIGTABLE_ANALYSIS_APP_PROFILE, "") != ""] == ["admin"] && module.function["admin"].environment.BIGTABLE_ANALYSIS_APP_PROFILE == "analysis"
    error_message = "Data Boost is not used by dumps alone, which admin answers."
  }
}

run "primary_cluster_not_set" {
  command = plan

  variables {
    primary_cluster = null
  }

  expect_failures = [var.primary_cluster]
}

run "only_cluster_is_primary" {
  command = plan

  variables {
    clusters        = { cluster-2 = { zone = "europe-west1-c" } }
    primary_cluster = null
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-2"
    error_message = "The only cluster is not the primary one."
  }
}

run "failover" {
  command = plan

  variables {
    primary_cluster = "cluster-2"
  }

  assert {
    condition     = output.bigtable.primary_cluster == "cluster-2"
    error_message = "primary_cluster does not change the cluster that the engine writes to."
  }
}

# While paused, nothing draws tickets, but the engine accepts events and serves reads.
run "paused" {
  variables {
    paused = true
  }

  assert {
    condition     = length(module.function["imports"].invokers) == 0
    error_message = "Clients can call imports while paused."
  }

  assert {
    condition     = alltrue([for name in ["ingest", "profiles"] : module.function[name].invokers == tolist(["everyone"])])
    error_message = "Clients cannot send events or read profiles while paused."
  }

  assert {
    condition     = module.events.push_endpoint == null
    error_message = "Pub/Sub pushes events while paused."
  }

  assert {
    condition     = module.tasks.waiting == tolist(["affinity-nightly", "affinity-nightly-acme", "purges", "refreshes-0", "refreshes-1", "worker"])
    error_message = "The queues and all rounds should be paused, but only these are: ${join(", ", module.tasks.waiting)}"
  }
}

run "resumed" {
  assert {
    condition     = module.events.push_endpoint == "${module.function["process"].uri}/" && module.events.slow_push_endpoint == "${module.function["process-slow"].uri}/" && length(module.tasks.waiting) == 0 && module.function["imports"].invokers == tolist(["everyone"])
    error_message = "Something is still paused: ${jsonencode(module.tasks.waiting)}"
  }

  # The functions have different URLs here, so a wrong one would be noticed.
  assert {
    condition     = module.tasks.queue_host == trimprefix(module.function["worker"].uri, "https://") && length(distinct([for f in module.function : f.uri])) == length(module.function)
    error_message = "Tasks go to ${module.tasks.queue_host}, the worker is at ${module.function["worker"].uri}."
  }
}

run "sizes" {
  command = plan

  variables {
    pack_window_ms = 50
    run_quota      = { cpu = 40, memory_gib = 60 }
    functions = {
      profiles = { min_instances = 2, memory = "1Gi" }
      worker   = { max_instances = 20 }
    }
  }

  assert {
    condition     = module.function["ingest"].environment.PACK_WINDOW == "50ms"
    error_message = "The window does not reach ingest, which has ${module.function["ingest"].environment.PACK_WINDOW}."
  }

  assert {
    condition     = local.size["profiles"].min_instances == 2 && local.size["profiles"].memory == "1Gi" && local.size["profiles"].concurrency == local.sizes.profiles.concurrency
    error_message = "A size in var.functions does not apply, or changes another part: ${jsonencode(local.size["profiles"])}"
  }
}

# An organization may permit grants to everyone and require the check of callers.
run "all_users" {
  variables {
    public_access = "all_users"
  }

  assert {
    condition     = alltrue([for name in local.public : module.function[name].invokers == tolist(["allUsers"])])
    error_message = "Everyone is not granted access to every public function."
  }
}

# Each function by itself, and a dedicated customer's as the common one.
run "billing_by_instances" {
  command = plan

  variables {
    functions = { ingest = { billing = "instances" } }
    run_quota = { cpu = 100, memory_gib = 100 }
    customers = { acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true } }
  }

  assert {
    condition     = [for key, f in module.function : key if f.billing == "instances"] == ["ingest", "ingest-acme"]
    error_message = "Other functions are billed by instances: ${jsonencode([for key, f in module.function : key if f.billing == "instances"])}"
  }
}

# `terraform output -raw canary` of a deployment that was rolled back keeps the earlier revision.
run "rolled_back" {
  variables {
    traffic = { ingest = { latest = 0, revision = "ingest-00007-abc" } }
  }

  assert {
    condition     = module.function["ingest"].traffic == { ingest-00007-abc = 100 } && jsondecode(output.canary).traffic["ingest"] == { latest = 0, revision = "ingest-00007-abc" }
    error_message = "The requests do not stay with the earlier revision: ${output.canary}"
  }

  assert {
    condition     = keys(jsondecode(output.canary).traffic) == keys(module.function) && jsondecode(output.canary).traffic["rank"] == { latest = 0, revision = module.function["rank"].revision }
    error_message = "The next apply would send requests to a new revision: ${output.canary}"
  }
}

run "logs_are_sampled" {
  command = plan

  variables {
    request_log_sample  = 0.1
    message_log_sample  = 0
    balancer_log_sample = 0.01
  }

  assert {
    condition = { for name, e in google_logging_project_exclusion.healthy : name => e.filter } == {
      requests = "${local.healthy_requests} AND sample(insertId, 0.9)"
      messages = local.healthy_messages
      reads    = local.healthy_reads
    }
    error_message = "The samples do not apply: ${jsonencode({ for name, e in google_logging_project_exclusion.healthy : name => e.filter })}"
  }

  assert {
    condition     = module.edge[0].log_sample_rates == tolist([0.01])
    error_message = "The load balancer logs other shares: ${jsonencode(module.edge[0].log_sample_rates)}"
  }
}

run "audited" {
  command = plan

  assert {
    condition     = alltrue([for c in google_project_iam_audit_config.this : toset([for l in c.audit_log_config : l.log_type]) == toset(["DATA_READ", "DATA_WRITE"])]) && keys(google_project_iam_audit_config.this) == ["cloudkms.googleapis.com", "secretmanager.googleapis.com"]
    error_message = "Reads of keys and secrets are not logged: ${jsonencode(keys(google_project_iam_audit_config.this))}"
  }
}

run "all_logs_are_kept" {
  command = plan

  variables {
    request_log_sample = 1
  }

  assert {
    condition     = keys(google_logging_project_exclusion.healthy) == ["reads"]
    error_message = "Entries are excluded although all are to be kept, besides lines that only a metric needs."
  }
}

# After a restore, every function uses the new instance and the new database. docs uses
# neither.
run "restored" {
  command = plan

  variables {
    bigtable_instance       = "affinity-2"
    firestore_database      = "affinity-3"
    firestore_keys_database = "affinity-4"
  }

  assert {
    condition     = alltrue([for name, f in module.function : f.environment.BIGTABLE_INSTANCE == "affinity-2" && f.environment.FIRESTORE_DATABASE == "affinity-3" && f.environment.FIRESTORE_KEYS_DATABASE == "affinity-4" if name != "docs"])
    error_message = "A function uses the old instance or database."
  }

  assert {
    condition     = output.bigtable.instance == "affinity-2" && output.cli.instance == "affinity-2" && output.cli.database == "affinity-3" && output.cli.keys_database == "affinity-4"
    error_message = "The outputs name the old instance or database: ${jsonencode(output.cli)}"
  }
}

# The names that Google keeps reserved after a teardown are others.
run "later_generation" {
  command = plan

  variables {
    generation   = "2"
    secured_keys = true
  }

  assert {
    condition = (
      [for v in ["TASKS_QUEUE", "TASKS_PURGE_QUEUE", "TASKS_REFRESH_QUEUES"] : [for name in split(",", module.function["worker"].environment[v]) : split("/", name)[5]]] == [["worker-2"], ["purges-2"], ["refreshes-2-0", "refreshes-2-1"]] &&
      endswith(output.tasks_queue, "/queues/worker-2") && google_kms_key_ring.affinity[0].name == "affinity-2"
    )
    error_message = "The functions know other queues, or the key ring has the name of the former deployment."
  }
}

# Where ingest and profiles keep an instance, the promises are stricter; where one of them does
# not, as in dev, they are not.
run "objectives_of_warm_functions" {
  command = plan

  variables {
    functions = { ingest = { min_instances = 1 }, profiles = { min_instances = 2 } }
  }

  assert {
    condition     = module.monitoring.objectives == { availability = 0.9995, stored = 0.99, stored_ms = 20, latency = 0.99, freshness = 0.99 }
    error_message = "The objectives of warm functions are ${jsonencode(module.monitoring.objectives)}."
  }
}

run "objectives_of_cold_functions" {
  command = plan

  variables {
    functions = { profiles = { min_instances = 2 } }
  }

  assert {
    condition     = module.monitoring.objectives == { availability = 0.995, stored = 0.99, stored_ms = 250, latency = 0.99, freshness = 0.99 }
    error_message = "The objectives of a function without an instance are ${jsonencode(module.monitoring.objectives)}."
  }
}

run "objectives_of_ones_own" {
  command = plan

  variables {
    objectives       = { latency = 0.95, latency_ms = 400 }
    alert_thresholds = { error_ratio = 0.05 }
    default_host     = "api.example.com"
    customers        = { acme = { host = "acme.example.com", app_id = "acme" } }
  }

  assert {
    condition     = module.monitoring.objectives == { availability = 0.995, stored = 0.99, stored_ms = 250, latency = 0.95, freshness = 0.99 }
    error_message = "The objectives are not those that are set, with the defaults of the others: ${jsonencode(module.monitoring.objectives)}"
  }

  assert {
    condition     = module.monitoring.checked_hosts == toset(["api.example.com", "acme.example.com"])
    error_message = "Google does not call every host: ${join(", ", module.monitoring.checked_hosts)}"
  }

  assert {
    condition     = module.monitoring.thresholds.error_ratio == 0.05 && module.monitoring.thresholds.lag_ms == 30000
    error_message = "Alerts open at other limits: ${jsonencode(module.monitoring.thresholds)}"
  }
}
