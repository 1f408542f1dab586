locals {
  # What each function may access, and its Bigtable app profile: functions.json says it.
  # Nothing else is granted. Whether a function may enqueue tasks follows from its variables.
  # console makes the requests of the other public functions in its process: it may do what they
  # may together, but decrypt no parents of secured keys. worker deletes all that a deleted app
  # has. functions/docs/operate/access.md has the same as a table.
  access = { for f in local.deployment.functions : f.name => merge(f.access, {
    writes = contains(f.access.writes, "*") ? local.all_tables : f.access.writes
  }) }

  all_tables = [for t in jsondecode(file("${path.module}/bigtable.json")).tables : t.name]

  members = { for key in keys(local.deployed) : key => module.function[key].service_account_member }

  table_grants = merge([for key, d in local.deployed : merge(
    { for t in local.access[d.of].reads : "${key}/${t}" => { table = t, role = "roles/bigtable.reader", member = local.members[key] } },
    { for t in local.access[d.of].writes : "${key}/${t}" => { table = t, role = "roles/bigtable.user", member = local.members[key] } },
  )]...)

  # Members by what they may do, for the modules that grant the roles.
  viewers     = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].configuration == "viewer" }
  users       = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].configuration == "user" }
  key_viewers = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].keys == "viewer" }
  key_users   = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].keys == "user" }
  publishers  = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].publishes }
  buriers     = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].buries }
  # Who publishes rows for analysts.
  analysed  = { for key, d in local.deployed : key => local.members[key] if contains(local.functions[d.of].env, "PUBSUB_WAREHOUSE_TOPIC") }
  enqueuers = { for key, d in local.deployed : key => local.members[key] if contains(local.functions[d.of].env, "TASKS_QUEUE") }
}
