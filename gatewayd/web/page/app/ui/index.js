/**
 * The building blocks of all views.
 */
export { Button, CopyButton, Icon, IconButton } from "#app/ui/controls";
export { Checkbox, SearchField, Select, Switch, TextArea, TextField } from "#app/ui/fields";
export { Menu, Tooltip, placeBeside } from "#app/ui/menu";
export { Avatar, Chip, EmptyState, ErrorNote, Progress, Skeleton, explain } from "#app/ui/states";
export { Table } from "#app/ui/table";
export { Dialog, Tabs } from "#app/ui/tabs";
