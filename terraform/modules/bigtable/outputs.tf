output "instance" {
  description = "The instance's name."
  value       = google_bigtable_instance.this.name
  # Who has the instance finds the tables, with the families of this version.
  depends_on = [google_bigtable_table.this]
}

output "app_profiles" {
  description = "Ids of the app profiles, by purpose."
  value = merge(
    { serving = google_bigtable_app_profile.serving.app_profile_id },
    { for name, p in google_bigtable_app_profile.single : name => p.app_profile_id },
    { for p in google_bigtable_app_profile.analysis : "analysis" => p.app_profile_id },
  )
}

output "tables" {
  description = "Names of all tables."
  value       = keys(google_bigtable_table.this)
}

output "primary_cluster" {
  description = "Cluster that the engine writes to."
  value       = var.primary_cluster
}

output "serving_clusters" {
  description = "Clusters that answer reads of stored profiles."
  value       = local.serving
}
