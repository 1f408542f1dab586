locals {
  longest_retention_days = coalesce(var.longest_retention_days, 90)
}

module "bigtable" {
  source = "./modules/bigtable"

  project_id    = var.project_id
  instance_name = var.bigtable_instance
  clusters = { for id, c in var.clusters : id => {
    zone               = coalesce(c.zone, "${var.region}-b")
    serves             = c.serves
    min_nodes          = c.min_nodes
    max_nodes          = c.max_nodes
    cpu_target         = c.cpu_target
    storage_target_gib = c.storage_target_gib
  } }
  primary_cluster        = coalesce(var.primary_cluster, keys(var.clusters)[0]) # null only where there is one
  tables                 = jsondecode(file("${path.module}/bigtable.json")).tables
  table_sets             = [for name, set in var.dedicated_tables : name if coalesce(set.region, local.home) == local.home]
  role_ending            = var.generation
  longest_retention_days = local.longest_retention_days
  deletion_protection    = var.deletion_protection
  backup_days            = var.backup_days
  data_boost             = var.data_boost

  clients = local.members
  grants  = local.table_grants

  depends_on = [google_storage_bucket_object.applied]
}

module "firestore" {
  source = "./modules/firestore"

  project_id             = var.project_id
  database               = var.firestore_database
  location               = var.region
  point_in_time_recovery = var.point_in_time_recovery
  deletion_protection    = var.deletion_protection
  backup_days            = var.backup_days

  # Jobs that have ended, and their shards, carry the time when Firestore may delete them.
  expiring = { for collection in ["backtests", "crowds", "dateRows", "linkPreviews", "migrations", "moves", "recomputes", "reenrichments", "reports", "residents", "segmentBuilds", "segmentExports", "shards"] : collection => "expiresAt" }
  queued   = ["backtests", "crowds", "dateRows", "linkPreviews", "migrations", "moves", "recomputes", "reenrichments", "reports", "residents", "segmentBuilds", "segmentExports"]

  viewers = local.viewers
  users   = local.users

  depends_on = [google_storage_bucket_object.applied]
}

# The apps' keys. No function that others call may write them: a fault in one makes no key.
# Operators write them with `affinity app key`.
module "keys" {
  source = "./modules/firestore"

  project_id             = var.project_id
  database               = var.firestore_keys_database
  location               = var.region
  point_in_time_recovery = var.point_in_time_recovery
  deletion_protection    = var.deletion_protection
  backup_days            = var.backup_days
  unindexed              = {}

  viewers = local.key_viewers
  users   = local.key_users

  depends_on = [google_storage_bucket_object.applied]
}

module "events" {
  source = "./modules/events"

  project_number       = data.google_project.this.number
  events               = local.deployment.topics.events
  dead_letters         = local.deployment.topics.deadLetters
  slow_events          = local.deployment.topics.slowEvents
  storage_regions      = length(var.data_regions) == 0 ? null : [var.region]
  process_uri          = module.function["process"].uri
  process_slow_uri     = module.function["process-slow"].uri
  paused               = var.paused
  ack_deadline_seconds = min(600, local.size["process"].timeout_seconds + 30)
  replay_days          = var.replay_days
  deletion_protection  = var.deletion_protection
  archive              = var.archive_days == 0 ? null : { bucket = "${var.project_id}-affinity-archive", location = var.region, days = var.archive_days, deletion_protection = var.deletion_protection }

  publishers = local.publishers
  buriers    = local.buriers

  dedicated = { for customer in keys(local.dedicated) : customer => {
    process_uri = module.function["process-${customer}"].uri
    draining    = local.dedicated[customer].draining
    publishers  = { for key, member in local.publishers : key => member if local.deployed[key].customer == null || local.deployed[key].customer == customer }
  } }

  depends_on = [google_storage_bucket_object.applied]
}

# Rows for analysts.
module "warehouse" {
  source = "./modules/warehouse"
  count  = var.warehouse ? 1 : 0

  project_id          = var.project_id
  project_number      = data.google_project.this.number
  location            = var.region
  topic               = local.deployment.topics.warehouse
  storage_regions     = length(var.data_regions) == 0 ? null : [var.region]
  days                = var.warehouse_days
  deletion_protection = var.deletion_protection
  publishers          = local.analysed

  depends_on = [google_storage_bucket_object.applied]
}

module "tasks" {
  source = "./modules/tasks"

  project_id     = var.project_id
  region         = var.region
  queue          = local.queue
  purge_queue    = local.purge_queue
  refresh_queues = local.refresh_queues
  worker_uri     = module.function["worker"].uri
  paused         = var.paused
  max_concurrent = local.size["worker"].max_instances * local.size["worker"].concurrency

  nightly = var.nightly
  schedules = { for name, c in var.customers : name => {
    app_id    = c.app_id
    schedule  = c.schedule
    time_zone = c.time_zone
  } if c.schedule != null }
  full_schedules = { for name, c in var.customers : name => {
    app_id    = c.app_id
    schedule  = c.full_schedule
    time_zone = c.time_zone
  } if c.full_schedule != null }

  enqueuers           = local.enqueuers
  deletion_protection = var.deletion_protection

  dedicated = { for customer in keys(local.dedicated) : customer => {
    worker_uri     = module.function["worker-${customer}"].uri
    max_concurrent = local.size["worker-${customer}"].max_instances * local.size["worker-${customer}"].concurrency
    draining       = local.dedicated[customer].draining
    enqueuers      = { for key, member in local.enqueuers : key => member if local.deployed[key].customer == null || local.deployed[key].customer == customer }
  } }

  depends_on = [google_storage_bucket_object.applied]
}
