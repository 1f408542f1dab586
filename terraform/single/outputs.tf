output "address" {
  description = "Address of the machine, to which the hosts must lead before the first request: the engine gets its certificates then."
  value       = google_compute_address.this.address
}

output "dns_records" {
  description = "Records to create where dns_zone is null."
  value       = var.dns_zone == null ? [for host in keys(var.hosts) : "${host}. 300 IN A ${google_compute_address.this.address}"] : []
}

output "next_steps" {
  description = "The commands that make the first app, from a machine with gcloud."
  value       = <<-EOT
    gcloud compute ssh ${var.name} --project ${var.project_id} --zone ${var.zone} --tunnel-through-iap -- -N -L 9090:127.0.0.1:9090 &
    export AFFINITY_OPERATOR=$(gcloud compute ssh ${var.name} --project ${var.project_id} --zone ${var.zone} --tunnel-through-iap --command 'sudo cat /var/lib/affinity/operator.token')
    affinity app create shop --url http://127.0.0.1:9090
    curl https://${keys(var.hosts)[0]}/healthz
  EOT
}
