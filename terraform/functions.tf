locals {
  deployment = jsondecode(file("${path.module}/functions.json"))

  # The queues: of tasks, of purges, and of the refreshes at the end of write windows. Functions
  # get their full names.
  queue          = "${local.deployment.queue}${local.generation}"
  purge_queue    = "${local.deployment.purgeQueue}${local.generation}"
  refresh_queues = [for i in range(local.deployment.refreshQueues.count) : "${local.deployment.refreshQueues.name}${local.generation}-${i}"]

  # Of names that Google keeps reserved after a destruction.
  generation = var.generation == "" ? "" : "-${var.generation}"

  functions = { for f in local.deployment.functions : f.name => f if f.name != "console" || var.console_host != null }

  # All deployed functions: those of functions.json, the second process for the events of
  # apps that are over their limit, and the dedicated customers' own. The maximum
  # numbers of instances of process and worker of a customer are those of the common ones.
  deployed = merge(
    { for name in keys(local.functions) : name => { of = name, customer = null } },
    { process-slow = { of = "process", customer = null } },
    merge([for customer, c in var.customers : {
      for name in concat(local.dedicated_public, ["process", "worker"]) : "${name}-${customer}" => { of = name, customer = customer }
    } if c.dedicated]...),
  )

  # The public functions that a dedicated customer has to themselves. The others do
  # little, or act for an operator.
  dedicated_public = ["ingest", "profiles"]
  dedicated        = { for customer, c in var.customers : customer => c if c.dedicated }

  public = [for name, f in local.functions : name if f.kind == "public"]

  # A size in var.functions overrides the one in sizes.tf. A dedicated customer's numbers
  # of instances override both for their public functions, and a size in var.functions by
  # the name of their own function overrides everything.
  size = { for key, d in local.deployed : key => merge(
    { min_instances = 0, billing = "requests" },
    try(local.sizes[key], local.sizes[d.of]),
    { for k, v in try(var.functions[d.customer == null ? key : d.of], {}) : k => v if v != null },
    d.customer == null || !contains(local.dedicated_public, d.of) ? {} : {
      min_instances = coalesce(var.customers[d.customer].min_instances, 0)
      max_instances = coalesce(var.customers[d.customer].max_instances, 10)
    },
    d.customer == null || contains(local.dedicated_public, d.of) ? {} : { min_instances = 0 },
    d.customer == null ? {} : { for k, v in try(var.functions[key], {}) : k => v if v != null },
  ) }

  # Cloud Run's URL of a service is known before the service exists, so the worker and
  # the functions that enqueue tasks can have it as a variable. Tasks carry this URL;
  # the queue sends every task to the worker whatever its URL.
  worker_url = "https://worker-${data.google_project.this.number}.${var.region}.run.app"

  # All variables of the deployment. A function gets those that functions.json lists
  # for it.
  environment = {
    GOOGLE_CLOUD_PROJECT         = var.project_id
    CUSTOMER_HOSTS               = jsonencode({ for c in values(var.customers) : c.host => c.app_id })
    DEDICATED_APPS               = jsonencode({ for customer, c in local.dedicated : c.app_id => customer if !c.draining })
    DELETION_SLACK               = var.deletion_slack
    FORWARDED_ADDRESSES          = "2" # the load balancer appends the client's address and its own
    PARENTS_KMS_KEY              = one(google_kms_crypto_key.parents[*].id) == null ? "" : one(google_kms_crypto_key.parents[*].id)
    BIGTABLE_PROJECT             = var.project_id
    BIGTABLE_INSTANCE            = module.bigtable.instance
    BIGTABLE_SERVING_APP_PROFILE = module.bigtable.app_profiles.serving
    FIRESTORE_PROJECT            = var.project_id
    FIRESTORE_DATABASE           = module.firestore.database
    FIRESTORE_KEYS_DATABASE      = module.keys.database
    PUBSUB_PROJECT               = var.project_id
    PUBSUB_EVENTS_TOPIC          = local.deployment.topics.events.name
    PUBSUB_SLOW_TOPIC            = local.deployment.topics.slowEvents.name
    PUBSUB_DEAD_LETTER_TOPIC     = local.deployment.topics.deadLetters.name
    PUBSUB_WAREHOUSE_TOPIC       = var.warehouse ? local.deployment.topics.warehouse : ""
    TASKS_QUEUE                  = module.tasks.queue
    TASKS_PURGE_QUEUE            = module.tasks.purge_queue
    TASKS_REFRESH_QUEUES         = join(",", module.tasks.refresh_queues)
    TASKS_SERVICE_ACCOUNT        = module.tasks.tasks_email
    TASKS_AUDIENCE               = local.worker_url
    WORKER_URL                   = local.worker_url
    REGIONS                      = local.regions_json
    PACK_WINDOW                  = "${var.pack_window_ms}ms"
    CONSOLE_API_URL              = "https://${local.first_host}"
  }

  environments = { for key, d in local.deployed : key => merge(local.environment, {
    BIGTABLE_APP_PROFILE = module.bigtable.app_profiles[local.access[d.of].appProfile]
    # Only dumps are long scans that may be late: README.md of the module bigtable.
    BIGTABLE_ANALYSIS_APP_PROFILE = d.of == "admin" ? lookup(module.bigtable.app_profiles, "analysis", "") : ""
    REGION                        = local.regional ? local.home : ""
  }) }

  # Terraform names the service, or all functions would have the name of the engine.
  telemetry_environments = { for key in keys(local.deployed) : key => length(var.telemetry.variables) == 0 ? {} : merge({ OTEL_SERVICE_NAME = key }, var.telemetry.variables) }
  telemetry_secrets      = var.telemetry.headers_secret == null ? {} : { OTEL_EXPORTER_OTLP_HEADERS = var.telemetry.headers_secret }

  # The variables of functions.json that hold a secret, and its id in Secret Manager.
  # Those without an id are not set.
  secret_ids = { for v, id in { CONSOLE_SECRET = var.console_secret, LOCATION_SECRET = var.location_secret } : v => id if id != "" }
  secrets    = { for key, d in local.deployed : key => merge(local.telemetry_secrets, { for v in try(local.functions[d.of].secrets, []) : v => local.secret_ids[v] if contains(keys(local.secret_ids), v) }) }

  # Another version of this one would hide all locations, so adding one changes nothing.
  secret_versions = { LOCATION_SECRET = "1" }

  # All services: those of this region, and those of other regions.
  services = concat(keys(local.deployed), keys(local.serving), keys(local.processing))

  # Without anything else said, the newest revision gets all requests.
  traffic = merge({ for key in local.services : key => { latest = 100, revision = null } }, var.traffic)

  # The public functions in the other serving regions, each with the name that it has in the
  # region of the deployment.
  serving = merge([for region in var.serving_regions : {
    for key, d in local.deployed : "${key}/${region}" => { key = key, of = d.of, region = region } if contains(local.public, d.of)
  }]...)

  # The load balancer sends no identity, so everyone may call public functions; ingress admits
  # only the load balancer. While the engine is paused, nobody imports.
  open = [for name in local.public : name if !var.paused || name != "imports"]

  # The callers of a private function, by its kind.
  invokers = {
    public    = {}
    pubsub    = { push = module.events.push_member }
    tasks     = { tasks = module.tasks.tasks_member, scheduler = module.tasks.scheduler_member }
    scheduler = { scheduler = module.tasks.scheduler_member }
  }
}

module "function" {
  source   = "./modules/function"
  for_each = local.deployed

  name        = each.key
  description = each.value.customer == null ? "Affinity: ${each.key}" : "Affinity: ${each.value.of} of the customer ${each.value.customer}"
  region      = var.region
  function    = module.image[each.value.of].function

  variables        = local.functions[each.value.of].env
  environment      = local.environments[each.key]
  more_environment = local.telemetry_environments[each.key]
  secrets          = local.secrets[each.key]
  secret_versions  = local.secret_versions
  project_id       = var.project_id

  min_instances   = local.size[each.key].min_instances
  max_instances   = local.size[each.key].max_instances
  concurrency     = local.size[each.key].concurrency
  cpu             = local.size[each.key].cpu
  memory          = local.size[each.key].memory
  timeout_seconds = local.size[each.key].timeout_seconds
  billing         = local.size[each.key].billing
  traffic         = local.traffic[each.key]

  ingress       = contains(local.public, each.value.of) ? "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER" : "INGRESS_TRAFFIC_INTERNAL_ONLY"
  public_access = contains(local.open, each.value.of) ? var.public_access : null
  invokers      = local.invokers[local.functions[each.value.of].kind]
  readiness     = contains(local.public, each.value.of) && length(var.serving_regions) > 0 && local.size[each.key].min_instances > 0

  depends_on = [google_project_service.secrets, terraform_data.project]
}

# Google's load balancer sends a request to the nearest region. The functions there run as
# those of the same name here, so they have the same access.
module "serving" {
  source   = "./modules/function"
  for_each = local.serving

  name        = each.value.key
  description = "Affinity: ${each.value.key} in ${each.value.region}"
  region      = each.value.region
  function    = module.image[each.value.of].function

  service_account = {
    email  = module.function[each.value.key].service_account_email
    member = module.function[each.value.key].service_account_member
  }

  variables        = local.functions[each.value.of].env
  environment      = merge(local.environments[each.value.key], lookup(local.regions_at, each.value.region, null) == null ? {} : { REGION = local.regions_at[each.value.region] })
  more_environment = local.telemetry_environments[each.value.key]
  secrets          = local.secrets[each.value.key]
  secret_versions  = local.secret_versions
  project_id       = var.project_id

  min_instances   = local.size[each.value.key].min_instances
  max_instances   = local.size[each.value.key].max_instances
  concurrency     = local.size[each.value.key].concurrency
  cpu             = local.size[each.value.key].cpu
  memory          = local.size[each.value.key].memory
  timeout_seconds = local.size[each.value.key].timeout_seconds
  billing         = local.size[each.value.key].billing
  traffic         = local.traffic[each.key]

  ingress       = "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
  public_access = contains(local.open, each.value.of) ? var.public_access : null
  readiness     = local.size[each.value.key].min_instances > 0
}

variable "public_access" {
  description = "How the load balancer, which sends no identity, may call the public functions. no_invoker_check: Cloud Run does not check their callers. all_users: allUsers have the role roles/run.invoker on them, where an organization permits such grants and requires the check. Either way only the load balancer reaches them, and they check keys."
  type        = string
  default     = "no_invoker_check"
  nullable    = false

  validation {
    condition     = contains(["no_invoker_check", "all_users"], var.public_access)
    error_message = "public_access \"${var.public_access}\" must be no_invoker_check or all_users."
  }
}

variable "traffic" {
  description = "For services that do not give all requests to their newest revision: the percentage that it gets, and the earlier revision that gets the others. By the keys of the output canary, which prints this variable for all services. See functions/docs/operate/upgrade.md."
  type = map(object({
    latest   = number
    revision = optional(string)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = length(setsubtract(keys(var.traffic), local.services)) == 0
    error_message = "traffic names services that do not exist: ${join(", ", setsubtract(keys(var.traffic), local.services))}. Services: ${join(", ", local.services)}."
  }
}
