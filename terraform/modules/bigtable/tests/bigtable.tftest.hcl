mock_provider "google" {}

variables {
  project_id             = "affinity-test"
  clusters               = { cluster-1 = { zone = "europe-west1-b" } }
  primary_cluster        = "cluster-1"
  longest_retention_days = 90
  tables = [
    { name = "events", families = [{ name = "e", collect = "age" }, { name = "m", collect = "age" }] },
    { name = "users", families = [{ name = "u", collect = "newest" }, { name = "p", collect = "newest" }] },
    { name = "refused", families = [{ name = "r", collect = "newest", days = 31 }] },
  ]
}

run "smallest_instance" {
  command = plan

  assert {
    condition     = length(google_bigtable_instance.this.cluster) == 1 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].min_nodes == 1 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].max_nodes == 1
    error_message = "The smallest instance does not have one cluster of one node."
  }

  assert {
    condition     = google_bigtable_instance.this.deletion_protection && google_bigtable_table.this["users"].deletion_protection == "PROTECTED"
    error_message = "The instance or a table can be deleted by default."
  }

  assert {
    condition     = toset([for f in google_bigtable_table.this["events"].column_family : f.family]) == toset(["e", "m"])
    error_message = "The table does not have the families e and m."
  }
}

run "garbage_collection" {
  command = plan

  assert {
    condition     = toset(keys(google_bigtable_gc_policy.this)) == toset(["events/e", "events/m", "users/u", "users/p", "refused/r"])
    error_message = "Not every family has a policy: ${join(", ", keys(google_bigtable_gc_policy.this))}"
  }

  # One day more than the retention.
  assert {
    condition     = jsondecode(google_bigtable_gc_policy.this["events/e"].gc_rules) == { rules = [{ max_age = "2184h" }] }
    error_message = "Bigtable drops events at another age: ${google_bigtable_gc_policy.this["events/e"].gc_rules}"
  }

  # A profile or a manifest has the time of the data that it describes, so an age
  # would drop it while it is in use.
  assert {
    condition     = alltrue([for f in ["users/u", "users/p"] : jsondecode(google_bigtable_gc_policy.this[f].gc_rules) == { rules = [{ max_version = 1 }] }])
    error_message = "Bigtable drops more of users' rows than superseded versions."
  }

  assert {
    condition     = jsondecode(google_bigtable_gc_policy.this["refused/r"].gc_rules) == { mode = "union", rules = [{ max_version = 1 }, { max_age = "744h" }] }
    error_message = "Refused events are dropped by another policy: ${google_bigtable_gc_policy.this["refused/r"].gc_rules}"
  }

  # A replicated instance must accept a longer age, but no other change that it warns of.
  assert {
    condition     = { for f, p in google_bigtable_gc_policy.this : f => p.ignore_warnings } == { "events/e" = true, "events/m" = true, "users/u" = false, "users/p" = false, "refused/r" = true }
    error_message = "Only the policies with an age should ignore warnings."
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
    error_message = "Bigtable would drop events of an app that keeps them forever: ${google_bigtable_gc_policy.this["events/e"].gc_rules}"
  }
}

run "backups" {
  command = plan

  variables {
    backup_days = 7
  }

  # Bigtable returns durations in this form. Any other form would make each plan show a
  # change.
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

run "backup_days_too_small" {
  command = plan

  variables {
    backup_days = 1
  }

  expect_failures = [var.backup_days]
}

run "roles" {
  command = plan

  variables {
    clusters = {
      pipelines = { zone = "europe-west1-b", serves = false }
      serving-1 = { zone = "europe-west1-c" }
      serving-2 = { zone = "europe-west4-a" }
    }
    primary_cluster = "pipelines"
  }

  assert {
    condition     = toset(google_bigtable_app_profile.serving.multi_cluster_routing_cluster_ids) == toset(["serving-1", "serving-2"])
    error_message = "Stored profiles are read from another cluster than those that serve."
  }

  assert {
    condition     = alltrue([for p in google_bigtable_app_profile.single : p.single_cluster_routing[0].cluster_id == "pipelines"])
    error_message = "Something that writes or computes uses a cluster that serves."
  }
}

run "nobody_serves" {
  command = plan

  variables {
    clusters        = { cluster-1 = { zone = "europe-west1-b", serves = false } }
    primary_cluster = "cluster-1"
  }

  expect_failures = [var.clusters]
}

run "app_profiles" {
  command = plan

  variables {
    clusters = {
      cluster-1 = { zone = "europe-west1-b", min_nodes = 3, max_nodes = 30, cpu_target = 50, storage_target_gib = 3072 }
      cluster-2 = { zone = "europe-west4-a" }
    }
    primary_cluster = "cluster-2"
  }

  assert {
    condition     = google_bigtable_app_profile.serving.multi_cluster_routing_use_any && google_bigtable_app_profile.serving.row_affinity && length(google_bigtable_app_profile.serving.single_cluster_routing) == 0
    error_message = "The app profile serving does not use every cluster."
  }

  assert {
    condition     = length(coalesce(google_bigtable_app_profile.serving.multi_cluster_routing_cluster_ids, [])) == 0
    error_message = "The app profile serving does not use a cluster that is added later."
  }

  # If two clusters drew tickets, both could draw the same one.
  assert {
    condition     = alltrue([for p in google_bigtable_app_profile.single : p.single_cluster_routing[0].cluster_id == "cluster-2" && p.single_cluster_routing[0].allow_transactional_writes && p.multi_cluster_routing_use_any == null])
    error_message = "processing and batch do not both write to the primary cluster only."
  }

  assert {
    condition     = google_bigtable_app_profile.single["batch"].standard_isolation[0].priority == "PRIORITY_LOW" && google_bigtable_app_profile.single["processing"].standard_isolation[0].priority == "PRIORITY_HIGH"
    error_message = "The app profile batch does not have the lower priority."
  }

  assert {
    condition     = google_bigtable_instance.this.cluster[0].autoscaling_config[0].max_nodes == 30 && google_bigtable_instance.this.cluster[0].autoscaling_config[0].cpu_target == 50 && [for c in google_bigtable_instance.this.cluster : c.autoscaling_config[0].storage_target] == [3072, 2560]
    error_message = "A cluster does not have its maximum or CPU target."
  }
}

run "no_data_boost" {
  command = plan

  assert {
    condition     = length(google_bigtable_app_profile.analysis) == 0 && !contains(keys(output.app_profiles), "analysis")
    error_message = "Data Boost is on although nobody asked for it."
  }
}

run "data_boost" {
  command = plan

  variables {
    clusters = {
      cluster-1 = { zone = "europe-west1-b" }
      cluster-2 = { zone = "europe-west4-a" }
    }
    primary_cluster = "cluster-2"
    data_boost      = true
  }

  assert {
    condition     = google_bigtable_app_profile.analysis[0].data_boost_isolation_read_only[0].compute_billing_owner == "HOST_PAYS" && length(google_bigtable_app_profile.analysis[0].standard_isolation) == 0
    error_message = "The app profile analysis is not one of Data Boost."
  }

  assert {
    condition     = google_bigtable_app_profile.analysis[0].single_cluster_routing[0].cluster_id == "cluster-2" && google_bigtable_app_profile.analysis[0].multi_cluster_routing_use_any == null
    error_message = "The app profile analysis does not read the primary cluster."
  }

  assert {
    condition     = google_bigtable_app_profile.analysis[0].single_cluster_routing[0].allow_transactional_writes != true
    error_message = "The app profile analysis allows writes."
  }

  assert {
    condition     = output.app_profiles["analysis"] == "analysis"
    error_message = "The functions do not get the app profile analysis."
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
    error_message = "The grant has another table or another role."
  }
}

run "role_of_a_later_deployment" {
  command = plan

  variables {
    role_ending = "2"
  }

  assert {
    condition     = google_project_iam_custom_role.connect.role_id == "affinity_bigtable_connect_2"
    error_message = "The role's id is that of a former deployment."
  }
}

# A set has all tables, with their policies and backups, and the same grants.
run "table_sets" {
  variables {
    table_sets = ["big"]
    grants = {
      "ingest/users" = { table = "users", role = "roles/bigtable.reader", member = "serviceAccount:fn-ingest@affinity-test.iam.gserviceaccount.com" }
    }
  }

  assert {
    condition     = toset([for t in output.tables : trimsuffix(t, ".big") if endswith(t, ".big")]) == toset([for t in output.tables : t if !endswith(t, ".big")])
    error_message = "The set has other tables: ${join(", ", output.tables)}"
  }

  assert {
    condition     = google_bigtable_table_iam_member.data["ingest/users.big"].table == "users.big" && google_bigtable_table_iam_member.data["ingest/users"].table == "users"
    error_message = "A client may not use the tables of the set, or not the common ones."
  }

  assert {
    condition     = alltrue([for key, p in google_bigtable_gc_policy.this : p.gc_rules == google_bigtable_gc_policy.this[replace(key, ".big/", "/")].gc_rules]) && length([for key in keys(google_bigtable_gc_policy.this) : key if strcontains(key, ".big/")]) * 2 == length(google_bigtable_gc_policy.this)
    error_message = "The families of the set have other policies."
  }
}

run "table_set_with_a_dot" {
  command = plan
  variables {
    table_sets = ["a.b"]
  }
  expect_failures = [var.table_sets]
}

run "unknown_primary_cluster" {
  command = plan

  variables {
    primary_cluster = "cluster-9"
  }

  expect_failures = [var.primary_cluster]
}

run "two_clusters_in_one_zone" {
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

run "min_above_max_nodes" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b", min_nodes = 3, max_nodes = 2 } }
  }

  expect_failures = [var.clusters]
}

run "storage_target_too_high" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b", storage_target_gib = 8192 } }
  }

  expect_failures = [var.clusters]
}

run "cpu_target_too_high" {
  command = plan

  variables {
    clusters = { cluster-1 = { zone = "europe-west1-b", cpu_target = 95 } }
  }

  expect_failures = [var.clusters]
}

run "unknown_collection" {
  command = plan

  variables {
    tables = [{ name = "events", families = [{ name = "e", collect = "never" }] }]
  }

  expect_failures = [var.tables]
}

run "days_of_events" {
  command = plan

  variables {
    tables = [{ name = "events", families = [{ name = "e", collect = "age", days = 31 }] }]
  }

  expect_failures = [var.tables]
}

run "fractional_retention" {
  command = plan

  variables {
    longest_retention_days = 0.5
  }

  expect_failures = [var.longest_retention_days]
}

run "grant_to_all_users" {
  command = plan

  variables {
    grants = { "ingest/users" = { table = "users", role = "roles/bigtable.admin", member = "allUsers" } }
  }

  expect_failures = [var.grants]
}

run "grant_on_unknown_table" {
  command = plan

  variables {
    grants = { "ingest/carts" = { table = "carts", role = "roles/bigtable.reader", member = "allUsers" } }
  }

  expect_failures = [var.grants]
}
