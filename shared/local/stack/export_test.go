package stack

// TasksAtOnce is how many tasks run at a time, beside purges.
const TasksAtOnce = tasksAtOnce
