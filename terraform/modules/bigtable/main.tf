resource "google_bigtable_instance" "this" {
  name                = var.instance_name
  display_name        = "Affinity"
  deletion_protection = var.deletion_protection

  dynamic "cluster" {
    for_each = var.clusters
    content {
      cluster_id   = cluster.key
      zone         = cluster.value.zone
      storage_type = "SSD"

      autoscaling_config {
        min_nodes  = cluster.value.min_nodes
        max_nodes  = cluster.value.max_nodes
        cpu_target = cluster.value.cpu_target
      }
    }
  }
}

resource "google_bigtable_table" "this" {
  for_each = { for t in var.tables : t.name => t }

  name                = each.key
  instance_name       = google_bigtable_instance.this.name
  deletion_protection = var.deletion_protection ? "PROTECTED" : "UNPROTECTED"

  dynamic "column_family" {
    for_each = each.value.families
    content {
      family = column_family.value.name
    }
  }
}

locals {
  families = merge([for t in var.tables : {
    for f in t.families : "${t.name}/${f.name}" => { table = t.name, family = f.name, collect = f.collect }
  }]...)

  # A day more than the retention leaves room for clocks.
  rules = {
    newest = { max_version = 1 }
    age    = { max_age = "${(var.longest_retention_days + 1) * 24}h" }
  }
}

# A family that nothing is dropped of has a policy without rules, and not none:
# a policy that is removed from here is abandoned, so that the one in Bigtable
# would go on dropping. Abandoned it must be, since a replicated instance refuses
# to have one removed.
resource "google_bigtable_gc_policy" "this" {
  for_each = local.families

  instance_name   = google_bigtable_instance.this.name
  table           = google_bigtable_table.this[each.value.table].name
  column_family   = each.value.family
  gc_rules        = each.value.collect == "age" && var.longest_retention_days == 0 ? null : jsonencode({ rules = [local.rules[each.value.collect]] })
  deletion_policy = "ABANDON"

  # A longer age is one of the changes that a replicated instance warns of and
  # refuses: until every cluster has it, one may have dropped what another still
  # has. No app counts such events before its own retention is raised, which is
  # done after the clusters agree.
  ignore_warnings = each.value.collect == "age"
}
