output "database" {
  description = "The database's name."
  value       = google_firestore_database.this.name
}

output "queued" {
  description = "Collections whose jobs are counted over all apps."
  value       = keys(google_firestore_index.queued)
}

output "expiring" {
  description = "Field by collection after whose time Firestore deletes a document."
  value       = { for f in google_firestore_field.expiring : f.collection => f.field }
}
