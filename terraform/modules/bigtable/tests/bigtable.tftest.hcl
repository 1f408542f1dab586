mock_provider "google" {}

variables {
  project_id             = "affinity-test"
  clusters               = { cluster-1 = { zone = "europe-west1-b" } }
  primary_cluster        = "cluster-1"
  longest_retention_days = 90
  tables = [
    { name = "events", families = [{ name = "e", collect = "age" }, { name = "m", collect = "age" }] },
    { name = "users", families = [{ name = "u", collect = "newest" }, { name = "p", collect = "newest" }] },
  ]
}

run "one_cluster" {
  command = plan

  assert {
    condition     = length(google_bigtable_instance.this.cluster) == 1 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].min_nodes == 1 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].max_nodes == 1
    error_message = "The least is not one cluster of one node."
  }

  assert {
    condition     = google_bigtable_instance.this.deletion_protection && google_bigtable_table.this["users"].deletion_protection == "PROTECTED"
    error_message = "What holds data can be deleted without having been asked."
  }

  assert {
    condition     = toset([for f in google_bigtable_table.this["events"].column_family : f.family]) == toset(["e", "m"])
    error_message = "The table does not have its families."
  }
}

run "collection" {
  command = plan

  assert {
    condition     = toset(keys(google_bigtable_gc_policy.this)) == toset(["events/e", "events/m", "users/u", "users/p"])
    error_message = "Not every family has a policy: ${join(", ", keys(google_bigtable_gc_policy.this))}"
  }

  # A day more than the retention.
  assert {
    condition     = jsondecode(google_bigtable_gc_policy.this["events/e"].gc_rules) == { rules = [{ max_age = "2184h" }] }
    error_message = "Events go at another age: ${google_bigtable_gc_policy.this["events/e"].gc_rules}"
  }

  # A profile or a manifest is as old as what it tells of, and must outlive it.
  assert {
    condition     = alltrue([for f in ["users/u", "users/p"] : jsondecode(google_bigtable_gc_policy.this[f].gc_rules) == { rules = [{ max_version = 1 }] }])
    error_message = "Something else than what is superseded goes of users' rows."
  }

  # A longer retention must pass in a replicated instance too; nothing else should.
  assert {
    condition     = { for f, p in google_bigtable_gc_policy.this : f => p.ignore_warnings } == { "events/e" = true, "events/m" = true, "users/u" = false, "users/p" = false }
    error_message = "The age cannot be raised, or warnings about profiles are not heeded."
  }
}

run "kept_for_ever" {
  command = plan

  variables {
    longest_retention_days = 0
  }

  # The policy must exist, because Bigtable would otherwise keep the previous one,
  # and its rule must never fire.
  assert {
    condition     = jsondecode(google_bigtable_gc_policy.this["events/e"].gc_rules) == { rules = [{ max_version = 2147483647 }] } && jsondecode(google_bigtable_gc_policy.this["users/u"].gc_rules) == { rules = [{ max_version = 1 }] }
    error_message = "Bigtable would drop events of an app that keeps them for ever: ${google_bigtable_gc_policy.this["events/e"].gc_rules}"
  }
}

run "backups" {
  command = plan

  variables {
    backup_days = 7
  }

  # Bigtable returns durations in this form; another one would show as a change in
  # each plan.
  assert {
    condition     = alltrue([for t in google_bigtable_table.this : one(t.automated_backup_policy).retention_period == "168h0m0s" && one(t.automated_backup_policy).frequency == "24h0m0s"])
    error_message = "A table has no daily backup: ${jsonencode({ for name, t in google_bigtable_table.this : name => t.automated_backup_policy })}"
  }
}

run "no_backups" {
  command = plan

  assert {
    condition     = alltrue([for t in google_bigtable_table.this : one(t.automated_backup_policy).retention_period == "0" && one(t.automated_backup_policy).frequency == "0"])
    error_message = "Backups are not switched off: ${jsonencode({ for name, t in google_bigtable_table.this : name => t.automated_backup_policy })}"
  }

  assert {
    condition     = !google_bigtable_instance.this.force_destroy
    error_message = "A protected instance can be deleted with its backups."
  }
}

run "backups_for_a_day" {
  command = plan

  variables {
    backup_days = 1
  }

  expect_failures = [var.backup_days]
}

run "profiles" {
  command = plan

  variables {
    clusters = {
      cluster-1 = { zone = "europe-west1-b", min_nodes = 3, max_nodes = 30, cpu_target = 50 }
      cluster-2 = { zone = "europe-west4-a" }
    }
    primary_cluster = "cluster-2"
  }

  assert {
    condition     = google_bigtable_app_profile.serving.multi_cluster_routing_use_any && google_bigtable_app_profile.serving.row_affinity && length(google_bigtable_app_profile.serving.single_cluster_routing) == 0
    error_message = "Stored profiles are not served by every cluster."
  }

  # Tickets drawn in two clusters would be drawn twice.
  assert {
    condition     = alltrue([for p in google_bigtable_app_profile.single : p.single_cluster_routing[0].cluster_id == "cluster-2" && p.single_cluster_routing[0].allow_transactional_writes && p.multi_cluster_routing_use_any == null])
    error_message = "processing and batch do not write to one and the same cluster."
  }

  assert {
    condition     = google_bigtable_app_profile.single["batch"].standard_isolation[0].priority == "PRIORITY_LOW" && google_bigtable_app_profile.single["processing"].standard_isolation[0].priority == "PRIORITY_HIGH"
    error_message = "Batch work is not behind the rest."
  }

  assert {
    condition     = google_bigtable_instance.this.cluster[0].autoscaling_config[0].max_nodes == 30 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].cpu_target == 50
    error_message = "A cluster does not have its maximum or CPU target."
  }
}

run "access" {
  variables {
    clients = { ingest = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    grants = {
      "ingest/users" = { table = "users", role = "roles/bigtable.reader", member = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    }
  }

  assert {
    condition     = google_project_iam_custom_role.connect.permissions == toset(["bigtable.instances.ping"]) && google_bigtable_instance_iam_member.connect["ingest"].role == "projects/affinity-test/roles/affinity_bigtable_connect"
    error_message = "A client may do more on the instance than connect, or cannot connect."
  }

  assert {
    condition     = google_bigtable_table_iam_member.data["ingest/users"].table == "users" && google_bigtable_table_iam_member.data["ingest/users"].role == "roles/bigtable.reader"
    error_message = "The grant is another one."
  }
}

run "cluster_that_is_none" {
  command = plan

  variables {
    primary_cluster = "cluster-9"
  }

  expect_failures = [var.primary_cluster]
}

run "two_clusters_in_a_zone" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b" }, cluster-2 = { zone = "europe-west1-b" } }
  }

  expect_failures = [var.clusters]
}

run "cluster_with_a_short_name" {
  command = plan

  variables {
    clusters        = { main = { zone = "europe-west1-b" } }
    primary_cluster = "main"
  }

  expect_failures = [var.clusters]
}

run "most_below_least" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b", min_nodes = 3, max_nodes = 2 } }
  }

  expect_failures = [var.clusters]
}

run "cpu_beyond_all_bounds" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b", cpu_target = 95 } }
  }

  expect_failures = [var.clusters]
}

run "collection_of_another_kind" {
  command = plan

  variables {
    tables = [{ name = "events", families = [{ name = "e", collect = "never" }] }]
  }

  expect_failures = [var.tables]
}

run "part_of_a_day" {
  command = plan

  variables {
    longest_retention_days = 0.5
  }

  expect_failures = [var.longest_retention_days]
}

run "grant_of_all" {
  command = plan

  variables {
    grants = { "ingest/users" = { table = "users", role = "roles/bigtable.admin", member = "allUsers" } }
  }

  expect_failures = [var.grants]
}

run "grant_on_no_table" {
  command = plan

  variables {
    grants = { "ingest/carts" = { table = "carts", role = "roles/bigtable.reader", member = "allUsers" } }
  }

  expect_failures = [var.grants]
}
