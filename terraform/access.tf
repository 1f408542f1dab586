locals {
  # What each function may access, and its Bigtable app profile. Nothing else is
  # granted. Whether a function may enqueue tasks follows from its variables.
  # README.md has the same as a table.
  access = {
    ingest     = { app_profile = "processing", reads = ["objects"], writes = ["refused", "usage", "rates"], firestore = "viewer", keys = "viewer", publishes = true, buries = false }
    imports    = { app_profile = "batch", reads = ["objects"], writes = ["events", "events_narrow", "users", "calls", "changes", "crowd", "refused", "usage", "rates", "audit_log"], firestore = "viewer", keys = "viewer", publishes = false, buries = false }
    profiles   = { app_profile = "processing", reads = ["objects", "events", "events_narrow", "histories", "dictionaries", "recent"], writes = ["users", "changes", "usage", "rates", "audit_log"], firestore = "viewer", keys = "viewer", publishes = false, buries = false }
    rank       = { app_profile = "processing", reads = ["objects", "dated", "crowd", "events", "events_narrow", "histories", "dictionaries"], writes = ["users", "usage", "rates", "audit_log", "jobs"], firestore = "user", keys = "viewer", publishes = false, buries = false }
    strategies = { app_profile = "processing", reads = ["objects", "events", "events_narrow", "histories", "dictionaries", "users"], writes = ["usage", "rates", "audit_log", "jobs"], firestore = "user", keys = "viewer", publishes = false, buries = false }
    catalog    = { app_profile = "processing", reads = [], writes = ["objects", "dated", "crowd", "usage", "rates", "audit_log"], firestore = "user", keys = "viewer", publishes = false, buries = false }
    admin      = { app_profile = "processing", reads = ["objects", "events", "events_narrow", "calls", "histories", "dictionaries", "crowd", "segments"], writes = ["users", "changes", "usage", "rates", "audit_log", "jobs"], firestore = "user", keys = "viewer", publishes = false, buries = false }
    segments   = { app_profile = "processing", reads = ["events", "events_narrow", "histories", "dictionaries", "changes"], writes = ["users", "segments", "usage", "rates", "audit_log", "jobs"], firestore = "user", keys = "viewer", publishes = false, buries = false }
    # console makes the requests of the other public functions in its process: it may do what they
    # may together, but decrypt no parents of secured keys.
    console = { app_profile = "processing", reads = ["histories", "dictionaries", "recent"], writes = ["objects", "dated", "events", "events_narrow", "users", "calls", "changes", "crowd", "segments", "refused", "usage", "rates", "audit_log", "jobs"], firestore = "user", keys = "viewer", publishes = true, buries = false }
    # docs reaches no backend, so its app profile is never used.
    docs    = { app_profile = "processing", reads = [], writes = [], firestore = "none", keys = "none", publishes = false, buries = false }
    process = { app_profile = "processing", reads = ["objects", "dictionaries"], writes = ["events", "events_narrow", "users", "calls", "changes", "histories", "refused", "usage", "rates", "recent"], firestore = "viewer", keys = "none", publishes = true, buries = true }
    # worker deletes the rows of a deleted app in every table, and its keys.
    worker = { app_profile = "batch", reads = [], writes = [for t in jsondecode(file("${path.module}/bigtable.json")).tables : t.name], firestore = "user", keys = "user", publishes = true, buries = false }
  }

  members = { for key in keys(local.deployed) : key => module.function[key].service_account_member }

  table_grants = merge([for key, d in local.deployed : merge(
    { for t in local.access[d.of].reads : "${key}/${t}" => { table = t, role = "roles/bigtable.reader", member = local.members[key] } },
    { for t in local.access[d.of].writes : "${key}/${t}" => { table = t, role = "roles/bigtable.user", member = local.members[key] } },
  )]...)

  # Members by what they may do, for the modules that grant the roles.
  viewers     = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].firestore == "viewer" }
  users       = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].firestore == "user" }
  key_viewers = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].keys == "viewer" }
  key_users   = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].keys == "user" }
  publishers  = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].publishes }
  buriers     = { for key, d in local.deployed : key => local.members[key] if local.access[d.of].buries }
  # Who publishes rows for analysts.
  analysed  = { for key, d in local.deployed : key => local.members[key] if contains(local.functions[d.of].env, "PUBSUB_WAREHOUSE_TOPIC") }
  enqueuers = { for key, d in local.deployed : key => local.members[key] if contains(local.functions[d.of].env, "TASKS_QUEUE") }
}
