# The ways into the instance. Only what is stored is read by more than one
# cluster: tickets and folds are transactions on rows, which are right in one
# cluster only, and everything that computes must see what they saw.

resource "google_bigtable_app_profile" "serving" {
  instance                      = google_bigtable_instance.this.name
  app_profile_id                = "serving"
  description                   = "Reads of stored profiles, from whichever cluster answers. A row is read from the same one while it answers, which finds it in its cache."
  multi_cluster_routing_use_any = true
  row_affinity                  = true

  standard_isolation {
    priority = "PRIORITY_HIGH"
  }

  ignore_warnings = true
}

locals {
  # Name, and how it stands against the other work.
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

  # Bigtable warns that transactions move when the cluster changes; how that is
  # done safely is the failover of the deployment's README.
  ignore_warnings = true
}
