output "addresses" {
  description = "IPv4 and IPv6 address that every host must point to."
  value       = { ipv4 = google_compute_global_address.this.address, ipv6 = google_compute_global_address.ipv6.address }
}

output "default_endpoint" {
  description = "URL that serves every app; null without a default host."
  value       = var.default_host == null ? null : "https://${var.default_host}"
}

output "endpoints" {
  description = "Endpoint of each customer."
  value = { for name, c in var.customers : name => {
    url        = "https://${c.host}"
    app_id     = c.app_id
    dedicated  = c.dedicated
    rate_limit = c.rate_limit
  } }
}

output "dns_records" {
  description = "DNS records to create in the zones of the hosts, but for those in dns_zone: the addresses of each host, and the proof of ownership for its certificate."
  value       = { for host, records in local.records : host => records if !contains(local.zone_hosts, host) }
}

output "url_map" {
  description = "Name of the URL map, a label of the load balancer's metrics."
  value       = google_compute_url_map.this.name
}

output "security_policy" {
  description = "Name of the Cloud Armor policy."
  value       = google_compute_security_policy.this.name
}

output "groups" {
  description = "Cloud Run services that the load balancer reaches, by region."
  value       = { for region in concat([var.region], var.more_regions) : region => sort([for key, g in google_compute_region_network_endpoint_group.this : g.cloud_run[0].service if local.groups[key].region == region]) }
}

output "ejects" {
  description = "Whether the load balancer leaves out a region that fails."
  value       = alltrue([for b in google_compute_backend_service.this : length(b.outlier_detection) > 0])
}

output "log_sample_rates" {
  description = "Shares of the requests that the load balancer logs, one of each backend."
  value       = distinct([for b in google_compute_backend_service.this : coalesce(one(b.log_config).sample_rate, 0)])
}
