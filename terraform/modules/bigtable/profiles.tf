# The app profiles. Only reads of stored profiles may use several clusters: those that
# serve. Tickets and folds are row transactions, which are correct in one cluster only, and
# everything that computes must read the same cluster.

locals {
  serving = sort([for id, c in var.clusters : id if c.serves])
}

resource "google_bigtable_app_profile" "serving" {
  instance                      = google_bigtable_instance.this.name
  app_profile_id                = "serving"
  description                   = "Reads of stored profiles, from whichever cluster that serves answers. A row is read from the same one while it answers, which finds it in its cache."
  multi_cluster_routing_use_any = true
  row_affinity                  = true

  # No list means every cluster, also one that is added later.
  multi_cluster_routing_cluster_ids = length(local.serving) == length(var.clusters) ? null : local.serving

  standard_isolation {
    priority = "PRIORITY_HIGH"
  }

  ignore_warnings = true
}

locals {
  # Priority of each app profile, and what it is for.
  single = {
    processing = { priority = "PRIORITY_HIGH", what = "Events as they come, and reads that compute." }
    batch      = { priority = "PRIORITY_LOW", what = "Recomputes, imports and all that may wait." }
  }
}

resource "google_bigtable_app_profile" "single" {
  for_each = local.single

  instance       = google_bigtable_instance.this.name
  app_profile_id = each.key
  description    = "${each.value.what} One cluster, the same for all that writes, with row transactions."

  single_cluster_routing {
    cluster_id                 = var.primary_cluster
    allow_transactional_writes = true
  }

  standard_isolation {
    priority = each.value.priority
  }

  # Bigtable warns when transactions move to another cluster. functions/docs/operate/failover.md of the
  # deployment says how to do that safely.
  ignore_warnings = true
}

# Data Boost reads with other machines than the nodes of the cluster, and does not see what
# was written in the last 35 minutes. It reads the cluster that is written, because a
# replica would be later still.
resource "google_bigtable_app_profile" "analysis" {
  count = var.data_boost ? 1 : 0

  instance       = google_bigtable_instance.this.name
  app_profile_id = "analysis"
  description    = "Dumps of apps, by Data Boost. It does not see what was written in the last 35 minutes."

  single_cluster_routing {
    cluster_id = var.primary_cluster
  }

  data_boost_isolation_read_only {
    compute_billing_owner = "HOST_PAYS"
  }

  ignore_warnings = true
}
