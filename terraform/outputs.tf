output "endpoint" {
  description = "URL that serves every app; null without a default host."
  value       = var.default_host == null ? null : "https://${var.default_host}"
}

output "console" {
  description = "URL of the console; null without console_host."
  value       = var.console_host == null ? null : "https://${var.console_host}"
}

output "customers" {
  description = "Each customer's URL, app, own functions, and schedules of the nightly round and of full recomputes."
  value = { for name, c in var.customers : name => {
    url       = "https://${c.host}"
    app_id    = c.app_id
    functions = [for key, d in local.deployed : key if d.customer == name]
    nightly   = c.schedule == null ? "with the others" : "${c.schedule} ${c.time_zone}"
    full      = c.full_schedule == null ? "never" : "${c.full_schedule} ${c.time_zone}"
  } }
}

output "dns_records" {
  description = "DNS records to create in the zones of the hosts. Google issues the certificates once the records exist."
  value       = length(module.edge) == 0 ? {} : module.edge[0].dns_records
}

output "functions" {
  description = "Each function's own URL. Functions answer only their callers there; clients use the endpoints."
  value       = { for key, f in module.function : key => f.uri }
}

output "canary" {
  description = "The variable traffic, with which the revisions that serve now keep all requests at the next apply: `terraform output -raw canary > canary.tfvars.json`."
  value = jsonencode({ traffic = {
    for key, f in merge(module.function, module.serving, module.processing) : key => {
      latest   = 0
      revision = local.traffic[key].latest < 50 ? local.traffic[key].revision : f.revision
    }
  } })
}

output "release" {
  description = "Commit of the functions that are deployed; null without zips. A failed apply leaves the former one."
  value       = local.release

  depends_on = [module.function, module.serving, module.processing]
}

output "checkout" {
  description = "Commands that make the checkout and dist/ what is deployed, so that an apply changes settings only: terraform output -raw checkout."
  value       = "git checkout ${try(local.packaged.configuration, "COMMIT")} && go run ./scripts/package --commit ${try(local.packaged.commit, "COMMIT")}\n"

  depends_on = [module.function, module.serving, module.processing]
}

output "cli" {
  description = "What commands of operators need to know of the deployment: `affinity context add prod --from-terraform terraform` keeps it."
  value = {
    url           = var.default_host == null ? "" : "https://${var.default_host}"
    project       = var.project_id
    database      = module.firestore.database
    keys_database = module.keys.database
    instance      = module.bigtable.instance
    app_profile   = module.bigtable.app_profiles.batch
    regions       = local.regions_json
    queue         = module.tasks.queue
    kms_key       = one(google_kms_crypto_key.parents[*].id)
  }
}

output "service_accounts" {
  description = "Service account of each function."
  value       = { for key, f in module.function : key => f.service_account_email }
}

output "bigtable" {
  description = "Bigtable instance, and the cluster that the engine writes to."
  value       = { instance = module.bigtable.instance, primary_cluster = module.bigtable.primary_cluster }
}

output "regions" {
  description = "Regions in which apps may live, for --regions of affinity app; empty without data_regions and dedicated_tables."
  value       = local.regions_json
}

output "parents_kms_key" {
  description = "Key of Cloud KMS that encrypts parents of secured keys, for --kms-key; null without secured_keys."
  value       = one(google_kms_crypto_key.parents[*].id)
}

output "archive_bucket" {
  description = "Bucket with the archive of accepted events; null without archive_days."
  value       = module.events.archive_bucket
}

output "regional_archive_buckets" {
  description = "The same of each data region: that of its apps' events."
  value       = { for name, e in module.regional_events : name => e.archive_bucket if e.archive_bucket != null }
}

output "warehouse_datasets" {
  description = "Datasets of BigQuery with the view events, by the name of the region of the data; empty without a warehouse."
  value       = merge({ for w in module.warehouse : local.home => w.dataset }, { for name, w in module.regional_warehouse : name => w.dataset })
}

output "tasks_queue" {
  description = "Queue of the worker, for --queue of affinity app delete."
  value       = module.tasks.queue
}

output "schedules" {
  description = "When the nightly rounds start."
  value       = module.tasks.schedules
}

locals {
  # A host and an app for the examples below.
  first_host = concat(var.default_host[*], [for c in values(var.customers) : c.host], ["HOST"])[0]
  first_app  = concat([for c in values(var.customers) : c.app_id], ["shop"])[0]
}

output "next_steps" {
  description = "Next steps after the first apply: `terraform output -raw next_steps`."
  value = join("\n", concat(
    length(module.edge) == 0 ? [
      "Nothing can be reached from outside yet: set default_host, or a customer's host, and apply again.",
      ] : [
      "Create the DNS records that `terraform output dns_records` lists; Google then issues the certificates within an hour.",
    ],
    [
      "Keep the deployment in a context, and create an app and its first two keys, search and admin:",
      "  go run ./scripts/affinity context add ${var.environment} --from-terraform terraform",
      "  go run ./scripts/affinity app create ${local.first_app}",
      "Then send an event, with the key search:",
      "  curl -i https://${local.first_host}/1/events -H 'X-Algolia-Application-Id: ${local.first_app}' -H 'X-Algolia-API-Key: SEARCH_KEY' -d '{\"events\":[{\"eventType\":\"view\",\"eventName\":\"Product Viewed\",\"index\":\"products\",\"userToken\":\"user-1\",\"filters\":[\"color:Red\"]}]}'",
    ],
    var.console_host == null ? [] : [
      "Open the console in a browser, and log in with the app and its key admin:",
      "  https://${var.console_host}",
    ],
    length(var.customers) == 0 ? [] : [
      "A customer's host accepts only the keys of its app. With another app's key the answer must be 403; any other answer means that the functions do not know the customer:",
      "  curl -i https://${values(var.customers)[0].host}/1/events -H 'X-Algolia-Application-Id: OTHER_APP' -H 'X-Algolia-API-Key: OTHER_KEY' -d '{\"events\":[]}'",
    ],
    [""],
  ))
}
