resource "google_bigtable_instance" "this" {
  name                = var.instance_name
  display_name        = "Affinity"
  deletion_protection = var.deletion_protection
  force_destroy       = !var.deletion_protection # Bigtable keeps an instance that has backups

  dynamic "cluster" {
    for_each = var.clusters
    content {
      cluster_id   = cluster.key
      zone         = cluster.value.zone
      storage_type = "SSD"

      autoscaling_config {
        min_nodes      = cluster.value.min_nodes
        max_nodes      = cluster.value.max_nodes
        cpu_target     = cluster.value.cpu_target
        storage_target = cluster.value.storage_target_gib
      }
    }
  }
}

locals {
  # The common tables, and those of each further set: their names end with the set's, behind a
  # dot, as the engine expects it (shared/app/config).
  endings = concat([""], [for set in var.table_sets : ".${set}"])
  tables  = merge([for ending in local.endings : { for t in var.tables : "${t.name}${ending}" => t }]...)
}

resource "google_bigtable_table" "this" {
  for_each = local.tables

  name                = each.key
  instance_name       = google_bigtable_instance.this.name
  deletion_protection = var.deletion_protection ? "PROTECTED" : "UNPROTECTED"

  dynamic "column_family" {
    for_each = each.value.families
    content {
      family = column_family.value.name
    }
  }

  # Zeros switch backups off; without the block, the provider would leave a table's
  # policy as it is. The durations are in the form in which Bigtable returns them.
  automated_backup_policy {
    retention_period = var.backup_days == 0 ? "0" : "${var.backup_days * 24}h0m0s"
    frequency        = var.backup_days == 0 ? "0" : "24h0m0s"
  }
}

locals {
  families = merge([for name, t in local.tables : {
    for f in t.families : "${name}/${f.name}" => { table = name, family = f.name, collect = f.collect, days = f.days }
  }]...)

  # The age is one day longer than the retention, because clocks differ. Without a
  # limit the rule is one that never fires, and not an empty one: if Bigtable
  # reported an empty rule as no policy, each plan would create the policy again.
  # A family with days of its own loses superseded versions and old cells.
  # shared/store has the same rules.
  rules = {
    newest = { max_version = 1 }
    age    = { max_age = "${(var.longest_retention_days + 1) * 24}h" }
    never  = { max_version = 2147483647 }
  }
}

# Every family has a policy, even where nothing is dropped. Terraform abandons a
# policy that it no longer has, because a replicated instance refuses to remove one,
# and Bigtable would still apply it.
resource "google_bigtable_gc_policy" "this" {
  for_each = local.families

  instance_name = google_bigtable_instance.this.name
  table         = google_bigtable_table.this[each.value.table].name
  column_family = each.value.family
  gc_rules = each.value.days > 0 ? jsonencode({ mode = "union", rules = [local.rules[each.value.collect], { max_age = "${each.value.days * 24}h" }] }) : jsonencode({
    rules = [local.rules[each.value.collect == "age" && var.longest_retention_days == 0 ? "never" : each.value.collect]]
  })
  deletion_policy = "ABANDON"

  # A replicated instance refuses a longer age unless warnings are ignored: until
  # every cluster has the new age, one cluster may have dropped what another one
  # still has. That does no harm: an app gets its longer retention only after the
  # clusters have the same data (functions/docs/operate/upgrade.md).
  ignore_warnings = each.value.collect == "age" || each.value.days > 0
}
