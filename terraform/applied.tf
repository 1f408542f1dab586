# A smaller value or a lost line of some variables makes Google delete what the larger
# one kept, by an update that no protection refuses. So each apply writes into the
# bucket of sources what it keeps, the next plan reads that list, and a plan that keeps
# less is refused unless allow_loss names the variable.
#
# The list is not in the state: a resource sees what an earlier apply gave it only if it
# ignores every later value.

locals {
  # What the variables keep now: a variable, or one member of it, and how much.
  keeps = merge(
    {
      longest_retention_days = local.longest_retention_days == 0 ? local.forever : local.longest_retention_days
      archive_days           = var.archive_days
      replay_days            = var.replay_days
      warehouse_days         = !var.warehouse ? 0 : var.warehouse_days == 0 ? local.forever : var.warehouse_days
      backup_days            = var.backup_days
      point_in_time_recovery = var.point_in_time_recovery ? 1 : 0
      secured_keys           = var.secured_keys ? 1 : 0
    },
    { for name in keys(var.data_regions) : "data_regions/${name}" => 1 },
    { for name in keys(var.dedicated_tables) : "dedicated_tables/${name}" => 1 },
    { for name, c in var.customers : "customers/${name}" => 1 if c.dedicated },
    { "generation/${coalesce(var.generation, "-")}" = 1 },
    { for id in compact([var.location_secret]) : "location_secret/${id}" => 1 },
  )
  forever = 1000000 # more days than a retention can have

  # A customer who drains has nothing that must be kept, and a region that drains without protection.
  released = concat(
    [for name, c in var.customers : "customers/${name}" if c.draining],
    [for name, r in var.data_regions : "data_regions/${name}" if r.draining && !var.deletion_protection],
  )

  # The objects of this apply.
  applied = { for what, amount in local.keeps : "${what}/${amount}" => amount if amount > 0 && !contains(local.released, what) }

  # What earlier applies kept. After a failed apply two amounts may be there.
  applied_before = { for what, amounts in {
    for object in data.google_storage_bucket_objects.applied.bucket_objects : regex("^applied/(.+)/[0-9]+$", object.name)[0] => tonumber(regex("[0-9]+$", object.name))... if can(regex("^applied/.+/[0-9]+$", object.name))
  } : what => max(amounts...) }

  # What this apply would lose, and the variables that would lose it.
  lost           = { for what, amount in local.applied_before : what => amount if amount > lookup(local.keeps, what, 0) }
  lost_variables = distinct([for what in keys(local.lost) : split("/", what)[0]])
  allowable      = setsubtract(setintersection(local.lost_variables, keys(local.losses)), var.allow_loss)

  # The consequence for each variable that allow_loss may name.
  losses = {
    longest_retention_days = "Bigtable would delete the events that are older"
    archive_days           = "Cloud Storage would delete the files of the archive that are older"
    replay_days            = "Pub/Sub would delete the applied events that are older"
    warehouse_days         = "BigQuery would delete the rows of events that are older, or without the warehouse all (with deletion_protection only after an apply with deletion_protection = false)"
    backup_days            = "later backups would be kept for a shorter time, or not be made"
    point_in_time_recovery = "Firestore would delete the earlier versions of its documents"
    secured_keys           = "Cloud KMS would destroy the key of all parents of secured keys (with deletion_protection only after an apply with deletion_protection = false)"
    dedicated_tables       = "without deletion_protection the tables would be deleted"
  }

  # Those that need another apply first: a protection would stop this one half-way.
  steps = {
    data_regions    = "the region's data, and the events and tasks that wait there, would be deleted. Put it back with draining = true, move its apps away, and apply deletion_protection = false first"
    customers       = "the events and tasks that wait for the dedicated customer would be deleted. Put the customer back with draining = true, and apply that first"
    location_secret = "under another secret no location of a user is found, and users would begin again in other regions. It never changes"
    generation      = "the queues would be replaced, and the tasks that wait deleted. Only a new deployment may have another generation"
  }

  amount_texts = { for what in ["point_in_time_recovery", "secured_keys"] : what => { "0" = "false", "1" = "true" } }
  lost_texts = [for what, amount in local.lost : "${what} ${
    strcontains(what, "/") ? "is gone" : "was ${
      amount == local.forever ? "0 (forever)" : try(local.amount_texts[what][tostring(amount)], amount)} and is ${
    try(local.amount_texts[what][tostring(local.keeps[what])], local.keeps[what])}"
  }: ${merge(local.losses, local.steps)[split("/", what)[0]]}" if !contains(var.allow_loss, split("/", what)[0])]
}

data "google_storage_bucket_objects" "applied" {
  bucket = google_storage_bucket.source.id # unknown, and so not read, before the bucket exists
  prefix = "applied/"
}

resource "terraform_data" "losses" {
  lifecycle {
    precondition {
      condition     = length(local.lost_texts) == 0
      error_message = "This apply would lose data that the last one kept. Nothing was changed.\n${join("\n", [for text in local.lost_texts : "  ${text}."])}\nPut the lost line or the larger value back.${length(local.allowable) == 0 ? "" : " If you mean the loss, plan and apply once with -var 'allow_loss=${jsonencode(local.allowable)}'."} See \"What a smaller value deletes\" in functions/docs/operate/deploy.md."
    }

    # A name that stays would allow the next loss, which nobody has seen.
    precondition {
      condition     = length(setsubtract(var.allow_loss, local.lost_variables)) == 0
      error_message = "allow_loss names ${join(", ", setsubtract(var.allow_loss, local.lost_variables))}, but this apply loses nothing by that. Take the name out, so that it allows no later loss."
    }
  }
}

# Written before what it lists: after a failed apply the list may name more than Google
# keeps, and never less.
resource "google_storage_bucket_object" "applied" {
  for_each = local.applied

  bucket  = google_storage_bucket.source.name
  name    = "applied/${each.key}"
  content = "An apply keeps this: see applied.tf.\n"

  depends_on = [terraform_data.losses]
}
