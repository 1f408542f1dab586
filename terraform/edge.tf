# Without a host there is no load balancer.
module "edge" {
  source = "./modules/edge"
  count  = var.default_host == null && length(var.customers) == 0 ? 0 : 1

  region          = var.region
  more_regions    = var.serving_regions
  default_host    = var.default_host
  dns_zone        = var.dns_zone
  release         = local.release
  log_sample_rate = var.balancer_log_sample
  functions       = { for name in local.public : name => module.function[name].name if name != "console" }
  console         = var.console_host == null ? null : { host = var.console_host, service = module.function["console"].name }
  customers = { for name, c in var.customers : name => {
    host       = c.host
    app_id     = c.app_id
    dedicated  = c.dedicated
    rate_limit = c.rate_limit
    services   = { for key, d in local.deployed : d.of => module.function[key].name if d.customer == name && contains(local.public, d.of) }
  } }

  # A group points to a service of that name in its region.
  depends_on = [terraform_data.project, module.serving]
}

module "monitoring" {
  source = "./modules/monitoring"

  alert_email = var.alert_email
  budget = var.billing_account == null ? null : {
    billing_account = var.billing_account
    amount          = var.monthly_budget
    project_id      = var.project_id
    project_number  = data.google_project.this.number
  }
  services          = { for name in keys(local.functions) : name => [for key, d in local.deployed : module.function[key].name if d.of == name] }
  private_functions = [for name, f in local.functions : name if f.kind != "public"]
  events_subscriptions = concat(
    [local.deployment.topics.events.subscription], values(module.events.dedicated_subscriptions),
    flatten([for e in values(module.regional_events) : concat([e.subscriptions.events], values(e.dedicated_subscriptions))]),
  )
  dead_letter_subscriptions = concat(
    [local.deployment.topics.deadLetters.subscription], [for e in values(module.regional_events) : e.subscriptions.dead_letters],
    module.warehouse[*].dead_letters, [for w in values(module.regional_warehouse) : w.dead_letters],
  )
  # Queues have the same names in each region.
  queues             = concat([local.queue, local.purge_queue], local.refresh_queues, module.tasks.dedicated_queues)
  bigtable_instances = concat([module.bigtable.instance], [for b in values(module.regional_bigtable) : b.instance])
  firestore_database = module.firestore.database
  keys_database      = module.keys.database
  security_policy    = one(module.edge[*].security_policy)
  thresholds         = var.alert_thresholds
  objectives         = var.objectives
  # Clients wait for these: the shared ones stand for those of dedicated customers.
  warm         = alltrue([for f in local.dedicated_public : local.size[f].min_instances > 0])
  project_id   = var.project_id
  console_host = var.console_host
  hosts        = toset(concat(var.default_host[*], [for c in values(var.customers) : c.host]))

  depends_on = [terraform_data.project]
}

variable "balancer_log_sample" {
  description = "Share of the requests that the load balancer logs, with the address of the client, from 0 to 1. Its metrics count all."
  type        = number
  default     = 0.1
  nullable    = false

  validation {
    condition     = var.balancer_log_sample >= 0 && var.balancer_log_sample <= 1
    error_message = "balancer_log_sample ${var.balancer_log_sample} must be from 0 to 1."
  }
}
