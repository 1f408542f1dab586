-- Each event once, without those of deleted users and of users who have opted out. The best row of an event knows
-- most of its objects and, of several such rows, is the last one.
SELECT e.*
FROM ${event_rows} AS e
WHERE NOT EXISTS (
    SELECT 1 FROM ${deletions} AS d
    WHERE d.app = e.app AND d.user_token = e.user_token
      AND (e.time <= d.deleted_until OR e.received_at <= d.received_until))
  AND NOT EXISTS (
    SELECT 1 FROM ${deletions} AS d
    WHERE d.app = e.app AND d.user_token = '' AND e.received_at <= d.received_until)
QUALIFY ROW_NUMBER() OVER (
    PARTITION BY e.app, e.user_token, e.time, e.id ORDER BY e.unknown_objects, e.written_at DESC) = 1
