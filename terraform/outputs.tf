output "endpoint" {
  description = "The URL that serves every app; null without a default host."
  value       = var.default_host == null ? null : "https://${var.default_host}"
}

output "customers" {
  description = "The URL of each customer, the app that it serves, and what is the customer's own."
  value = { for name, c in var.customers : name => {
    url       = "https://${c.host}"
    app_id    = c.app_id
    functions = [for key, d in local.deployed : key if d.customer == name]
    nightly   = c.schedule == null ? "with the others" : "${c.schedule} ${c.time_zone}"
  } }
}

output "dns_records" {
  description = "The records to make at whoever serves the hosts' zones. Certificates are issued once they are there."
  value       = length(module.edge) == 0 ? {} : module.edge[0].dns_records
}

output "functions" {
  description = "Every function's own URL. None answers there but to its callers: public ones answer at the endpoints."
  value       = { for key, f in module.function : key => f.uri }
}

output "service_accounts" {
  description = "As whom each function runs."
  value       = { for key, f in module.function : key => f.service_account_email }
}

output "bigtable" {
  description = "The instance, and the cluster that is written to."
  value       = { instance = module.bigtable.instance, primary_cluster = module.bigtable.primary_cluster }
}

output "schedules" {
  description = "When the nightly rounds begin."
  value       = module.tasks.schedules
}

locals {
  # Whatever there is to show an example by.
  first_host = concat(var.default_host[*], [for c in values(var.customers) : c.host], ["HOST"])[0]
  first_app  = concat([for c in values(var.customers) : c.app_id], ["shop"])[0]
}

output "next_steps" {
  description = "What to do after the first apply: `terraform output -raw next_steps`."
  value = join("\n", concat(
    length(module.edge) == 0 ? [
      "Nothing can be reached from outside yet: set default_host, or a customer's host, and apply again.",
      ] : [
      "Make the DNS records that `terraform output dns_records` names; certificates follow within the hour.",
    ],
    [
      "Make an app and its first key:",
      "  go run ./scripts/affinity app create ${local.first_app} --project ${var.project_id} --database ${module.firestore.database}",
      "Then send an event:",
      "  curl -i https://${local.first_host}/1/events -H 'X-Algolia-Application-Id: ${local.first_app}' -H 'X-Algolia-API-Key: KEY' -d '{\"events\":[{\"eventType\":\"view\",\"eventName\":\"Product Viewed\",\"index\":\"products\",\"userToken\":\"user-1\",\"filters\":[\"color:Red\"]}]}'",
    ],
    length(var.customers) == 0 ? [] : [
      "A customer's host takes the keys of its app only. With another app and its key the answer must be 403; if it is anything else, the host does not reach the functions:",
      "  curl -i https://${values(var.customers)[0].host}/1/events -H 'X-Algolia-Application-Id: OTHER_APP' -H 'X-Algolia-API-Key: OTHER_KEY' -d '{\"events\":[]}'",
    ],
    [""],
  ))
}
