# Regions in which apps may live besides that of the deployment: what each has of its own.
# An app says in its configuration where it lives, and the engine finds the rest in REGIONS.

locals {
  # The name of the region of the deployment, in which apps live that name none.
  home = coalesce(var.region_name, var.region)

  # What config.Regions reads. The first is the region of the deployment. A condition would make
  # texts of all values.
  regional = length(var.data_regions) + length(var.dedicated_tables) > 0
  places = concat(
    [{ name = local.home, instance = module.bigtable.instance, location = var.region, worker = local.worker_url }],
    [for name, r in var.data_regions : merge({ name = name, instance = local.instances[name], location = r.region, worker = local.regional_worker_urls[name] }, [for d in [{ draining = true }] : d if r.draining]...)],
    [for name, set in var.dedicated_tables : { name = name, in = coalesce(set.region, local.home) }],
  )
  regions_json = !local.regional ? "" : jsonencode(local.places)
  # Built from variables, because functions need the names, and the grants need the functions.
  instances            = { for name, r in var.data_regions : name => coalesce(r.bigtable_instance, "affinity-${name}") }
  regional_worker_urls = { for name, r in var.data_regions : name => "https://worker-${data.google_project.this.number}.${r.region}.run.app" }

  # The data region at each region of Google Cloud that has one.
  regions_at = { for name, r in var.data_regions : r.region => name }

  # The private functions in the data regions, those of dedicated customers too, each with
  # the name that it has in the region of the deployment.
  processing = merge([for name, r in var.data_regions : {
    for key, d in local.deployed : "${key}/${name}" => { key = key, of = d.of, data_region = name, region = r.region } if !contains(local.public, d.of)
  }]...)
}

module "regional_bigtable" {
  source   = "./modules/bigtable"
  for_each = var.data_regions

  project_id    = var.project_id
  instance_name = local.instances[each.key]
  clusters = { for id, c in each.value.clusters : id => {
    zone               = coalesce(c.zone, "${each.value.region}-b")
    serves             = c.serves
    min_nodes          = c.min_nodes
    max_nodes          = c.max_nodes
    cpu_target         = c.cpu_target
    storage_target_gib = c.storage_target_gib
  } }
  primary_cluster        = coalesce(each.value.primary_cluster, keys(each.value.clusters)[0]) # null only where there is one
  tables                 = jsondecode(file("${path.module}/bigtable.json")).tables
  table_sets             = [for name, set in var.dedicated_tables : name if set.region == each.key]
  role_ending            = var.generation
  longest_retention_days = local.longest_retention_days
  deletion_protection    = var.deletion_protection
  backup_days            = var.backup_days
  data_boost             = var.data_boost

  # Functions of every region answer for the apps of all regions.
  clients = local.members
  grants  = local.table_grants

  depends_on = [google_storage_bucket_object.applied]
}

module "regional_events" {
  source   = "./modules/events"
  for_each = var.data_regions

  project_number       = data.google_project.this.number
  ending               = ".${each.key}"
  storage_regions      = [each.value.region]
  push_account         = { email = module.events.push_account }
  events               = local.deployment.topics.events
  dead_letters         = local.deployment.topics.deadLetters
  slow_events          = local.deployment.topics.slowEvents
  process_uri          = module.processing["process/${each.key}"].uri
  process_slow_uri     = module.processing["process-slow/${each.key}"].uri
  paused               = var.paused
  ack_deadline_seconds = min(600, local.size["process"].timeout_seconds + 30)
  replay_days          = var.replay_days
  deletion_protection  = var.deletion_protection
  archive              = var.archive_days == 0 ? null : { bucket = "${var.project_id}-affinity-archive-${each.key}", location = each.value.region, days = var.archive_days, deletion_protection = var.deletion_protection }

  publishers = local.publishers
  buriers    = local.buriers

  dedicated = { for customer in keys(local.dedicated) : customer => {
    process_uri = module.processing["process-${customer}/${each.key}"].uri
    draining    = local.dedicated[customer].draining
    publishers  = { for key, member in local.publishers : key => member if local.deployed[key].customer == null || local.deployed[key].customer == customer }
  } }

  depends_on = [google_storage_bucket_object.applied]
}

module "regional_warehouse" {
  source   = "./modules/warehouse"
  for_each = { for name, r in var.data_regions : name => r if var.warehouse }

  project_id          = var.project_id
  project_number      = data.google_project.this.number
  location            = each.value.region
  ending              = ".${each.key}"
  storage_regions     = [each.value.region]
  topic               = local.deployment.topics.warehouse
  days                = var.warehouse_days
  deletion_protection = var.deletion_protection
  publishers          = local.analysed
  service_account     = { email = module.warehouse[0].service_account }

  depends_on = [google_storage_bucket_object.applied]
}

# The schedules are those of the region of the deployment: its worker starts the rounds of all
# apps, and their tasks go to the queues of their regions.
module "regional_tasks" {
  source   = "./modules/tasks"
  for_each = var.data_regions

  project_id     = var.project_id
  region         = each.value.region
  queue          = local.queue
  purge_queue    = local.purge_queue
  refresh_queues = local.refresh_queues
  tasks_account  = { email = module.tasks.tasks_email }
  worker_uri     = module.processing["worker/${each.key}"].uri
  paused         = var.paused
  max_concurrent = local.size["worker"].max_instances * local.size["worker"].concurrency
  nightly        = null
  enqueuers      = local.enqueuers

  deletion_protection = var.deletion_protection

  dedicated = { for customer in keys(local.dedicated) : customer => {
    worker_uri     = module.processing["worker-${customer}/${each.key}"].uri
    max_concurrent = local.size["worker-${customer}"].max_instances * local.size["worker-${customer}"].concurrency
    draining       = local.dedicated[customer].draining
    enqueuers      = { for key, member in local.enqueuers : key => member if local.deployed[key].customer == null || local.deployed[key].customer == customer }
  } }

  depends_on = [google_storage_bucket_object.applied]
}

module "processing" {
  source   = "./modules/function"
  for_each = local.processing

  name        = each.value.key
  description = "Affinity: ${each.value.key} in ${each.value.data_region}"
  region      = each.value.region
  function    = module.image[each.value.of].function

  service_account = {
    email  = module.function[each.value.key].service_account_email
    member = module.function[each.value.key].service_account_member
  }

  variables        = local.functions[each.value.of].env
  environment      = merge(local.environments[each.value.key], { REGION = each.value.data_region })
  more_environment = local.telemetry_environments[each.value.key]
  secrets          = local.secrets[each.value.key]
  secret_versions  = local.secret_versions
  project_id       = var.project_id

  # No instance waits, as a data region may have little traffic.
  min_instances   = lookup(var.data_regions[each.value.data_region].min_instances, each.value.key, 0)
  max_instances   = local.size[each.value.key].max_instances
  concurrency     = local.size[each.value.key].concurrency
  cpu             = local.size[each.value.key].cpu
  memory          = local.size[each.value.key].memory
  timeout_seconds = local.size[each.value.key].timeout_seconds
  billing         = local.size[each.value.key].billing
  traffic         = local.traffic[each.key]

  # Schedules call the worker of the region of the deployment only.
  invokers = { for label, member in local.invokers[local.functions[each.value.of].kind] : label => member if label != "scheduler" }
}

variable "location_secret" {
  description = "Id of the secret of Secret Manager under which the keys of locations hold a hash of each user, in apps whose users live in several regions. Its first version counts, and must never change: functions/docs/operate/data-regions.md. Empty, the default: no app can have such users."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{0,255}$", var.location_secret))
    error_message = "location_secret must be the id of a secret of the project, not its content: letters, digits, underscores and hyphens."
  }
}
